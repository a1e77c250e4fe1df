"""What transformers and plain PyTorch compute for a small llama on packed rows: the truth that
ptrain is held against. Shapes: rows b, tokens of a row s, heads n, size of a head d.
"""
import ctypes
import ctypes.util
import math

import torch
import torch.nn.functional as F
import transformers
from transformers.models.llama import modeling_llama

NO_TARGET = -1
MASK32 = 0xFFFFFFFF


def make_model(sizes, dtype):
    """LlamaForCausalLM with ptrain's defaults; in float64 patched to stay there."""
    config = transformers.LlamaConfig(
        rms_norm_eps=1e-5, rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
        attn_implementation="sdpa" if dtype == torch.float64 else "eager", use_cache=False, **sizes)
    model = transformers.LlamaForCausalLM(config).to(dtype)
    if dtype == torch.float64:
        keep_float64(model)
    return model


def keep_float64(model):
    """Stock norm and rotary angles round to float32 (so does eager attention's softmax)."""
    def norm(self, x):
        mean_square = x.pow(2).mean(-1, keepdim=True)
        return self.weight * x * torch.rsqrt(mean_square + self.variance_epsilon)

    def rotary(self, x, position_ids):
        return rotary_angles(position_ids, self.config)

    for module in model.modules():
        if isinstance(module, modeling_llama.LlamaRMSNorm):
            module.forward = norm.__get__(module)
        if isinstance(module, modeling_llama.LlamaRotaryEmbedding):
            module.forward = rotary.__get__(module)


def head_size(config):
    return config.head_dim or config.hidden_size // config.num_attention_heads


def rotary_angles(positions, config):
    size, theta = head_size(config), config.rope_parameters["rope_theta"]
    frequencies = theta ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)
    angles = positions.double()[..., None] * frequencies
    angles = torch.cat((angles, angles), -1)
    return angles.cos(), angles.sin()


def batch_of(rows):
    """Tokens, targets, positions [b s] and who may see whom [b 1 s s], from rows_tool's rows."""
    tokens, targets, positions = (torch.tensor([row[key] for row in rows])
                                  for key in ("tokens", "targets", "positions"))
    document = torch.zeros_like(tokens)
    for r, row in enumerate(rows):
        for d, (begin, end) in enumerate(row["documents"]):
            document[r, begin:end] = d
            assert row["positions"][begin:end] == list(range(end - begin)), "positions restart"
    same = document[:, :, None] == document[:, None, :]
    return tokens, targets, positions, (same & causal(tokens.shape[1]))[:, None]


def causal(length):
    return torch.ones(length, length, dtype=torch.bool).tril()


def logits_of(model, batch):
    tokens, _, positions, visible = batch
    dtype = next(model.parameters()).dtype
    hidden = torch.zeros(visible.shape, dtype=dtype).masked_fill(~visible, torch.finfo(dtype).min)
    return model(input_ids=tokens, position_ids=positions, attention_mask=hidden).logits


def mean_loss(logits, targets):
    """Sum over target tokens divided by their number."""
    total = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=NO_TARGET,
                            reduction="sum")
    return total / (targets != NO_TARGET).sum()


def plain_loss(weights, config, batch):
    """A llama in a few lines of float64, with nothing from transformers."""
    tokens, targets, positions, visible = batch
    size, eps = head_size(config), config.rms_norm_eps
    cos, sin = (x[:, None] for x in rotary_angles(positions, config))

    def norm(x, name):
        return weights[name] * x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps)

    def heads(x, name):   # [b n s d]
        return (x @ weights[name].T).unflatten(-1, (-1, size)).transpose(1, 2)

    def rotate(x):
        left, right = x.chunk(2, -1)
        return x * cos + torch.cat((-right, left), -1) * sin

    x = weights["model.embed_tokens.weight"][tokens]
    for i in range(config.num_hidden_layers):
        block = f"model.layers.{i}."
        h = norm(x, block + "input_layernorm.weight")
        q = rotate(heads(h, block + "self_attn.q_proj.weight"))
        k = rotate(heads(h, block + "self_attn.k_proj.weight"))
        v = heads(h, block + "self_attn.v_proj.weight")
        sharing = q.shape[1] // k.shape[1]   # query heads of a key head
        k, v = k.repeat_interleave(sharing, 1), v.repeat_interleave(sharing, 1)
        scores = (q @ k.transpose(2, 3) / math.sqrt(size)).masked_fill(~visible, -math.inf)
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
        x = x + mixed @ weights[block + "self_attn.o_proj.weight"].T
        h = norm(x, block + "post_attention_layernorm.weight")
        gate = h @ weights[block + "mlp.gate_proj.weight"].T
        up = h @ weights[block + "mlp.up_proj.weight"].T
        x = x + (gate * gate.sigmoid() * up) @ weights[block + "mlp.down_proj.weight"].T
    x = norm(x, "model.norm.weight")
    head = weights.get("lm_head.weight", weights["model.embed_tokens.weight"])
    log_probabilities = (x @ head.T).log_softmax(-1)
    kept = targets != NO_TARGET
    picked = log_probabilities.gather(-1, targets.clamp(min=0)[..., None])[..., 0]
    return -(picked * kept).sum() / kept.sum()


def rate_of(step, peak, warmup, total, final):
    """Linear to the peak, then a cosine down to `final` of it at the last step; steps from 1."""
    if step < warmup:
        return peak * step / warmup
    share = (step - warmup) / max(total - warmup, 1)
    return peak * (final + (1 - final) * (1 + math.cos(math.pi * share)) / 2)


def train(model, batches, rates, betas, weight_decay, clip_norm):
    """torch.optim.AdamW; matrices decay, vectors do not. Losses and gradient norms."""
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(
        [{"params": [p for p in parameters if p.dim() > 1], "weight_decay": weight_decay},
         {"params": [p for p in parameters if p.dim() == 1], "weight_decay": 0.0}],
        lr=0.0, betas=betas, eps=1e-8)
    losses, norms = [], []
    for batch, rate in zip(batches, rates):
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.zero_grad()
        loss = mean_loss(logits_of(model, batch), batch[1])
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(parameters, clip_norm).item())
        optimizer.step()
        losses.append(loss.item())
    return losses, norms


# --- initial weights: Philox4x32-10 keyed by name, Box-Muller (Salmon and others, SC 2011) ---

def xxh3(text):
    library = ctypes.CDLL(ctypes.util.find_library("xxhash"))
    library.XXH3_64bits.restype = ctypes.c_uint64
    return library.XXH3_64bits(text.encode(), ctypes.c_size_t(len(text.encode())))


def philox(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & MASK32, (a >> 32) ^ c[3] ^ k[1], a & MASK32]
        k = [(k[0] + 0x9E3779B9) & MASK32, (k[1] + 0xBB67AE85) & MASK32]
    return c


def normals(name, seed, count):
    key = xxh3(name) ^ seed
    values = []
    for block in range((count + 3) // 4):
        words = philox([block, 0, 0, 0], [key & MASK32, key >> 32])
        u = [(word + 0.5) / 2**32 for word in words]
        for a, b in ((u[0], u[1]), (u[2], u[3])):
            radius = math.sqrt(-2 * math.log(a))
            values += [radius * math.cos(2 * math.pi * b), radius * math.sin(2 * math.pi * b)]
    return torch.tensor(values[:count], dtype=torch.float64)


def initial_weights(model, seed):
    """By Hugging Face name; those that write to the residual stream are smaller."""
    weights = {}
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1:
            weights[name] = torch.ones_like(parameter)
            continue
        spread = model.config.initializer_range
        if name.endswith(("o_proj.weight", "down_proj.weight")):
            spread /= math.sqrt(2 * model.config.num_hidden_layers)
        values = normals(name, seed, parameter.numel()) * spread
        weights[name] = values.reshape(parameter.shape).to(parameter.dtype)
    return weights


def set_weights(model, weights):
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(weights[name])
