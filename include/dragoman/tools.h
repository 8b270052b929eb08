// SPDX-License-Identifier: MIT
// Dragoman: everything behind the tool commands, one header per topic. Same conventions as
// dragoman.h: structs of options begin with their size, which the default function sets. But the ABI is
// that of a release, not a stable one: the symbol version of these functions (DRAGOMAN_TOOLS_0_1)
// changes where a report or a function does.
#ifndef DRAGOMAN_TOOLS_H
#define DRAGOMAN_TOOLS_H

#include "dragoman/align.h"
#include "dragoman/average.h"
#include "dragoman/cluster.h"
#include "dragoman/common.h"
#include "dragoman/devices.h"
#include "dragoman/eval.h"
#include "dragoman/evidence.h"
#include "dragoman/features.h"
#include "dragoman/lattice.h"
#include "dragoman/lm.h"
#include "dragoman/models.h"
#include "dragoman/phrase.h"
#include "dragoman/profile.h"
#include "dragoman/quantize.h"
#include "dragoman/score.h"
#include "dragoman/shortlist.h"
#include "dragoman/shrink.h"

#endif
