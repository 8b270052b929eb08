# SPDX-License-Identifier: MIT
"""Models of Marian with random weights: Transformers with an SSRU decoder and tied embeddings, as .npz. Needs numpy.

    make_model(FILE, SIZE, SHAPE, numpy)     SIZE: of the vocabulary; SHAPE: width, inner width, layers of encoder and decoder
"""
CONFIG = """type: transformer
dim-vocabs: [SIZE, SIZE]
dim-emb: WIDTH
dim-rnn: 1024
enc-depth: ENCODER
dec-depth: DECODER
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
transformer-dim-ffn: INNER
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
    text = CONFIG
    for word, number in zip(("SIZE", "WIDTH", "INNER", "ENCODER", "DECODER"), (size, *shape)):
        text = text.replace(word, str(number))
    text = text.encode() + b"\0"
    out["special:model.yml"] = numpy.frombuffer(text, dtype=numpy.int8)
    numpy.savez(path, **out)
