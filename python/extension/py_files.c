// SPDX-License-Identifier: MIT
#include "py_dragoman.h"

PyMethodDef py_file_methods[] = {
    {NULL, NULL, 0, NULL},
};
