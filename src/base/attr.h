// SPDX-License-Identifier: MIT
// Compiler attributes. The only file outside kernel/ that may use compiler extensions.
#ifndef DGM_BASE_ATTR_H
#define DGM_BASE_ATTR_H

#if defined(__GNUC__)
#define DGM_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define DGM_LIKELY(x) __builtin_expect(!!(x), 1)
#define DGM_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define DGM_ALIGNED(n) __attribute__((aligned(n)))
#define DGM_NOINLINE __attribute__((noinline))
#define DGM_ALWAYS_INLINE inline __attribute__((always_inline))
#else
#define DGM_PRINTF(fmt, args)
#define DGM_LIKELY(x) (x)
#define DGM_UNLIKELY(x) (x)
#define DGM_ALIGNED(n)
#define DGM_NOINLINE
#define DGM_ALWAYS_INLINE inline
#endif

#if defined(__SANITIZE_ADDRESS__)
#define DGM_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DGM_ASAN 1
#endif
#endif
#ifndef DGM_ASAN
#define DGM_ASAN 0
#endif

#endif
