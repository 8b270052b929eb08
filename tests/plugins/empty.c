// SPDX-License-Identifier: MIT
// A shared object that is no device.
extern int dragoman_no_device;
int dragoman_no_device = 1;
