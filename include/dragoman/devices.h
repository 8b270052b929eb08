// SPDX-License-Identifier: MIT
// Dragoman tools: what this machine can compute on. Conventions as in tools.h.
#ifndef DRAGOMAN_DEVICES_H
#define DRAGOMAN_DEVICES_H

#include <stddef.h>
#include <stdint.h>

#include "dragoman/common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dgm_device_info {
    size_t size;
    char name[64];        // for dgm_settings.device: "cpu:avx2", "cuda:0"
    char title[128];      // for people
    uint64_t memory;      // bytes
    uint64_t memory_free; // now
    char precisions[64];  // of products: "f32, i16, i8, bf16"
    char problem[512];    // why it cannot be used; "": it can
} dgm_device_info;

// Fills devices[0 .. room) and returns how many there are, which may be more. The CPU comes first.
DGM_API size_t dgm_devices_sized(dgm_device_info *devices, size_t room, size_t size);
static inline size_t dgm_devices(dgm_device_info *devices, size_t room)
{
    return dgm_devices_sized(devices, room, sizeof *devices);
}

// "cpu avx2: gemm_f32_avx2 ...", what dgm_open would use. device as in dgm_settings; NULL: its default.
DGM_API dgm_status dgm_device(const char *device, char *buffer, size_t size, dgm_error *error);

#ifdef __cplusplus
}
#endif

#endif
