# SPDX-License-Identifier: MIT
"""Models of Marian as .npz: random ones (Transformers with an SSRU decoder and tied embeddings), and those of our files.

    make_model(FILE, SIZE, SHAPE, numpy)     SIZE: of the vocabulary; SHAPE: width, inner width, layers of encoder and decoder
    trained_model(FILE, MODEL, numpy)        the weights of a ModelFile (peers_gguf.py) as 32-bit floats; see there

numpy is the caller's, so that it is missing there if it is.
"""
import peers_gguf

CONFIG = """type: transformer
dim-vocabs: [SIZE, SIZE]
dim-emb: 0
dim-rnn: 1024
enc-depth: 0
dec-depth: 0
enc-type: bidirectional
enc-cell: gru
enc-cell-depth: 1
dec-cell: ssru
dec-cell-base-depth: 2
dec-cell-high-depth: 1
skip: false
layer-normalization: false
right-left: false
input-types: []
tied-embeddings: false
tied-embeddings-src: false
tied-embeddings-all: true
output-omit-bias: false
factors-combine: sum
factors-dim-emb: 0
lemma-dependency: ""
lemma-dim-emb: 0
transformer-heads: 8
transformer-no-projection: false
transformer-rnn-projection: false
transformer-pool: false
transformer-dim-ffn: 0
transformer-decoder-dim-ffn: 0
transformer-ffn-depth: 2
transformer-decoder-ffn-depth: 0
transformer-ffn-activation: relu
transformer-dim-aan: 2048
transformer-aan-depth: 2
transformer-aan-activation: swish
transformer-aan-nogate: false
transformer-decoder-autoreg: rnn
transformer-tied-layers: []
transformer-guided-alignment-layer: last
transformer-preprocess: ""
transformer-postprocess-emb: d
transformer-postprocess: dan
transformer-postprocess-top: ""
transformer-train-position-embeddings: false
transformer-depth-scaling: false
transformer-attention-mask: default
transformer-alibi-shift: false
transformer-alibi-trainable: false
transformer-disable-position-embeddings: false
transformer-no-bias: false
transformer-no-affine: false
separator-symbol: "[eos]"
bert-train-type-embeddings: true
bert-type-vocab-size: 2
ulr: false
ulr-dim-emb: 0
ulr-trainable-transformation: false
version: v1.12.42
"""
SHAPE = "dim-emb", "transformer-dim-ffn", "enc-depth", "dec-depth"


def make_model(path, size, shape, numpy):
    """The end symbol and the unknown one have a bias that keeps them from being chosen."""
    width, inner, encoder, decoder = shape
    rng = numpy.random.default_rng(1)
    out = {}

    def matrix(name, rows, cols):
        limit = (6 / (rows + cols)) ** 0.5
        out[name] = rng.uniform(-limit, limit, (rows, cols)).astype(numpy.float32)

    def vector(name, value, n=width):
        out[name] = numpy.full((1, n), value, numpy.float32)

    def norm(prefix):
        vector(prefix + "_ln_scale", 1)
        vector(prefix + "_ln_bias", 0)

    def attention(prefix):
        for part in "qkvo":
            matrix(prefix + "_W" + part, width, width)
            vector(prefix + "_b" + part, 0)
        norm(prefix + "_Wo")

    def network(prefix):
        matrix(prefix + "_W1", width, inner)
        matrix(prefix + "_W2", inner, width)
        vector(prefix + "_b1", 0, inner)
        vector(prefix + "_b2", 0)
        norm(prefix + "_ffn")

    matrix("Wemb", size, width)
    vector("decoder_ff_logit_out_b", 0, size)
    out["decoder_ff_logit_out_b"][0, :2] = -1e4
    for i in range(1, encoder + 1):
        attention("encoder_l%d_self" % i)
        network("encoder_l%d_ffn" % i)
    for i in range(1, decoder + 1):
        matrix("decoder_l%d_rnn_W" % i, width, width)
        matrix("decoder_l%d_rnn_Wf" % i, width, width)
        vector("decoder_l%d_rnn_bf" % i, 0)
        norm("decoder_l%d_rnn_ffn" % i)
        attention("decoder_l%d_context" % i)
        network("decoder_l%d_ffn" % i)
    save(path, out, dict(zip(SHAPE, shape)), size, numpy)


def save(path, tensors, changes, size, numpy):
    """The tensors with the configuration: CONFIG with changes."""
    text = CONFIG.replace("SIZE", str(size))
    for key, value in changes.items():
        before, _, rest = text.partition(f"\n{key}: ")
        text = f"{before}\n{key}: {value}\n{rest.partition(chr(10))[2]}"
    tensors["special:model.yml"] = numpy.frombuffer(text.encode() + b"\0", dtype=numpy.int8)
    numpy.savez(path, **tensors)


# ---- our files -----------------------------------------------------------------------------------

PARTS = {"self.q": "self_{}q", "self.k": "self_{}k", "self.v": "self_{}v", "self.o": "self_{}o", "self.norm": "self_Wo_ln_{}",
         "cross.q": "context_{}q", "cross.k": "context_{}k", "cross.v": "context_{}v", "cross.o": "context_{}o",
         "cross.norm": "context_Wo_ln_{}", "ffn.in": "ffn_{}1", "ffn.out": "ffn_{}2", "ffn.norm": "ffn_ffn_ln_{}"}


def trained_model(path, model, numpy):
    """Two numbers of Marian's own differ from those that the model was trained with: the denominator of its sinusoids (127 instead
    of 128 for a width of 256; Marian 1.12 cannot run with positions from a file) and what its norms add to the variance (1e-6).
    So the file is a model of its own, very near the other, and both programs must run it.
    """
    get = lambda name, default=None: model.keys.get(peers_gguf.KEY + name, default)
    width, layers = get("d_model"), get("decoder_layers")
    order = model.keys.get("dragoman.source.vocab.map")
    size = len(peers_gguf.spellings(model.keys["dragoman.source.vocab.sentencepiece"]))

    def floats(name):
        shape, numbers = model.tensor(name)
        return numpy.array(numbers, dtype=numpy.float32).reshape(shape)

    rows = list(order) if order else list(range(size))  # Marian numbers subwords as SentencePiece does
    bias = floats("out.bias").reshape(-1) if "out.bias" in model.places else numpy.zeros(max(rows) + 1, numpy.float32)
    out = {"Wemb": floats("src.embed")[rows], "decoder_ff_logit_out_b": bias[rows].reshape(1, -1)}
    for name in model.places:
        side, *part, kind = name.split(".")
        if side not in ("enc", "dec") or kind not in ("weight", "bias"):
            continue
        number = int(part.pop(0))
        norm, values = part[-1] == "norm", floats(name)
        theirs = PARTS[".".join(part)].format(("scale" if kind == "weight" else "bias") if norm else "Wb"[kind == "bias"])
        values = values.T if values.ndim == 2 and values.shape[0] > 1 and not norm else values.reshape(1, -1)
        out[f"{side}oder_l{number + 1}_{theirs}"] = numpy.ascontiguousarray(values)
    save(path, out, {"dim-emb": width, "transformer-dim-ffn": get("ffn"), "transformer-decoder-dim-ffn": get("decoder_ffn", 0),
                     "enc-depth": get("encoder_layers"), "dec-depth": layers, "transformer-heads": get("heads"),
                     "transformer-ffn-activation": get("activation"), "transformer-decoder-autoreg": "self-attention",
                     "dec-cell": "gru"}, size, numpy)
