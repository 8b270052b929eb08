// SPDX-License-Identifier: MIT
// The names that a pickle may hold; see pickle.h. They are what torch, argparse, omegaconf, torchtext, OpenNMT-py,
// fairseq and numpy write into checkpoints of translation models. None is ever called: most are only carried along.
#include <string.h>

#include "import/pickle.h"

#define STORAGE(module, name, type, dtype, size)                                                   \
    {                                                                                              \
        module, name, DGM_PY_STORAGE, type, dtype, size                                            \
    }
#define ROLE(module, name, role)                                                                   \
    {                                                                                              \
        module, name, role, DGM_STORED_OTHER, NULL, 0                                              \
    }
#define RECORD(module, name) ROLE(module, name, DGM_PY_RECORD)

static const dgm_py_name names[] = {
    STORAGE("torch", "FloatStorage", DGM_STORED_F32, "float32", 4),
    STORAGE("torch", "HalfStorage", DGM_STORED_F16, "float16", 2),
    STORAGE("torch", "BFloat16Storage", DGM_STORED_BF16, "bfloat16", 2),
    STORAGE("torch", "DoubleStorage", DGM_STORED_F64, "float64", 8),
    STORAGE("torch", "LongStorage", DGM_STORED_I64, "int64", 8),
    STORAGE("torch", "IntStorage", DGM_STORED_I32, "int32", 4),
    STORAGE("torch", "ShortStorage", DGM_STORED_I16, "int16", 2),
    STORAGE("torch", "CharStorage", DGM_STORED_I8, "int8", 1),
    STORAGE("torch", "ByteStorage", DGM_STORED_OTHER, "uint8", 1),
    STORAGE("torch", "BoolStorage", DGM_STORED_OTHER, "bool", 1),
    ROLE("torch._utils", "_rebuild_tensor_v2", DGM_PY_TENSOR),
    ROLE("torch._utils", "_rebuild_tensor", DGM_PY_TENSOR),
    ROLE("torch._utils", "_rebuild_parameter", DGM_PY_PARAMETER),
    ROLE("torch._utils", "_rebuild_parameter_with_state", DGM_PY_PARAMETER),
    RECORD("torch", "Size"),
    RECORD("torch", "device"),
    RECORD("torch", "float32"),
    RECORD("torch", "float16"),
    RECORD("torch", "bfloat16"),
    RECORD("torch", "float64"),
    RECORD("torch", "int64"),
    RECORD("torch", "int32"),
    RECORD("torch", "long"),
    RECORD("torch", "uint8"),
    ROLE("collections", "OrderedDict", DGM_PY_MAPPING),
    ROLE("collections", "defaultdict", DGM_PY_MAPPING),
    ROLE("collections", "Counter", DGM_PY_MAPPING),
    ROLE("__builtin__", "dict", DGM_PY_MAPPING),
    ROLE("builtins", "dict", DGM_PY_MAPPING),
    ROLE("argparse", "Namespace", DGM_PY_NAMESPACE),
    ROLE("omegaconf.dictconfig", "DictConfig", DGM_PY_CONTAINER),
    ROLE("omegaconf.listconfig", "ListConfig", DGM_PY_CONTAINER),
    ROLE("omegaconf.nodes", "AnyNode", DGM_PY_NODE),
    ROLE("omegaconf.nodes", "IntegerNode", DGM_PY_NODE),
    ROLE("omegaconf.nodes", "FloatNode", DGM_PY_NODE),
    ROLE("omegaconf.nodes", "BooleanNode", DGM_PY_NODE),
    ROLE("omegaconf.nodes", "StringNode", DGM_PY_NODE),
    ROLE("omegaconf.nodes", "EnumNode", DGM_PY_NODE),
    RECORD("omegaconf.base", "Metadata"),
    RECORD("omegaconf.base", "ContainerMetadata"),
    RECORD("typing", "Any"),
    RECORD("typing", "Dict"),
    RECORD("typing", "List"),
    RECORD("typing", "Optional"),
    RECORD("typing", "Union"),
    RECORD("__builtin__", "object"),
    RECORD("builtins", "object"),
    RECORD("__builtin__", "list"),
    RECORD("builtins", "list"),
    RECORD("__builtin__", "tuple"),
    RECORD("builtins", "tuple"),
    RECORD("__builtin__", "set"),
    RECORD("builtins", "set"),
    RECORD("__builtin__", "int"),
    RECORD("builtins", "int"),
    RECORD("__builtin__", "long"),
    RECORD("__builtin__", "float"),
    RECORD("builtins", "float"),
    RECORD("__builtin__", "bool"),
    RECORD("builtins", "bool"),
    RECORD("__builtin__", "str"),
    RECORD("builtins", "str"),
    RECORD("__builtin__", "unicode"),
    RECORD("copy_reg", "_reconstructor"),
    RECORD("copyreg", "_reconstructor"),
    RECORD("functools", "partial"),
    RECORD("numpy", "dtype"),
    RECORD("numpy", "ndarray"),
    RECORD("numpy.core.multiarray", "scalar"),
    RECORD("numpy._core.multiarray", "scalar"),
    RECORD("numpy.core.multiarray", "_reconstruct"),
    RECORD("numpy._core.multiarray", "_reconstruct"),
    RECORD("_codecs", "encode"),
    RECORD("torchtext.vocab", "Vocab"),
    RECORD("torchtext.vocab", "_default_unk_index"),
    RECORD("torchtext.data.field", "Field"),
    RECORD("torchtext.data.field", "RawField"),
    RECORD("torchtext.data.field", "LabelField"),
    RECORD("torchtext.legacy.vocab", "Vocab"),
    RECORD("torchtext.legacy.vocab", "_default_unk_index"),
    RECORD("torchtext.legacy.data.field", "Field"),
    RECORD("torchtext.legacy.data.field", "RawField"),
    RECORD("torchtext.legacy.data.field", "LabelField"),
    RECORD("torchtext.data.pipeline", "Pipeline"),
    RECORD("onmt.inputters.text_dataset", "TextMultiField"),
    RECORD("onmt.inputters.text_dataset", "_feature_tokenize"),
    RECORD("onmt.inputters.inputter", "AlignField"),
    RECORD("onmt.inputters.inputter", "make_src"),
    RECORD("onmt.inputters.inputter", "make_tgt"),
    RECORD("onmt.inputters.inputter", "_default_unk_index"),
    RECORD("onmt.inputters.fields", "TextMultiField"),
    RECORD("onmt.inputters.fields", "AlignField"),
    RECORD("onmt.inputters.fields", "_feature_tokenize"),
    RECORD("onmt.inputters.fields", "make_src"),
    RECORD("onmt.inputters.fields", "make_tgt"),
    RECORD("onmt.constants", "ModelTask"),
    RECORD("fairseq.meters", "AverageMeter"),
    RECORD("fairseq.meters", "TimeMeter"),
    RECORD("fairseq.meters", "StopwatchMeter"),
    RECORD("fairseq.logging.meters", "AverageMeter"),
    RECORD("fairseq.logging.meters", "TimeMeter"),
    RECORD("fairseq.logging.meters", "StopwatchMeter"),
    RECORD("fairseq.dataclass.configs", "FairseqConfig"),
};

static bool same(dgm_text text, const char *name)
{
    return strlen(name) == text.size && memcmp(name, text.data, text.size) == 0;
}

const dgm_py_name *dgm_py_name_find(dgm_text module, dgm_text name)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (same(name, names[i].name) && same(module, names[i].module)) return &names[i];
    return NULL;
}
