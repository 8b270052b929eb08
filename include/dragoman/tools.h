// SPDX-License-Identifier: MIT
// Dragoman: everything behind the tool commands, one header per topic. Conventions and growth of
// structs as in dragoman.h, but the ABI is that of a release, not a stable one: the symbol version of
// these functions (DRAGOMAN_TOOLS_0_1) changes where a function does.
//   - Options: the default function beside them sets the size.
//   - Reports, measures and scores that you hand over to be filled: {.size = sizeof x}, asked for
//     before the work begins. The library fills the first `size` bytes; if your struct is the larger
//     one, the rest becomes zero. Where a function has a twin that ends in _sized and takes the size as
//     an argument, the one without it sets the size itself.
//   - What the library returns, lists of it included, lies in its own memory: items[i] is a pointer.
//   - Small structs without a size never change: dgm_line, dgm_pair, dgm_progress, dgm_sentence,
//     dgm_shrink_widths, dgm_token_pair, dgm_way_info, and those that dragoman.h names.
#ifndef DRAGOMAN_TOOLS_H
#define DRAGOMAN_TOOLS_H

#include "dragoman/align.h"
#include "dragoman/average.h"
#include "dragoman/cluster.h"
#include "dragoman/common.h"
#include "dragoman/devices.h"
#include "dragoman/document.h"
#include "dragoman/eval.h"
#include "dragoman/evidence.h"
#include "dragoman/features.h"
#include "dragoman/lattice.h"
#include "dragoman/lm.h"
#include "dragoman/memory.h"
#include "dragoman/models.h"
#include "dragoman/phrase.h"
#include "dragoman/profile.h"
#include "dragoman/quantize.h"
#include "dragoman/route.h"
#include "dragoman/score.h"
#include "dragoman/shortlist.h"
#include "dragoman/shrink.h"
#include "dragoman/text.h"
#include "dragoman/tune.h"

#endif
