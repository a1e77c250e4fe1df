"""Weights of Hugging Face in and out: what transformers saves, ptrain trains on; what ptrain
exports, transformers loads. One row a family.

    python hugging_face_test.py PTRAIN ROWS_TOOL
"""
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile

try:
    import torch
    import transformers
except ImportError as error:
    print(f"skipped: {error}; `scripts/setup --tests` installs what is missing")
    sys.exit(77)   # ctest's SKIP_RETURN_CODE

import command
import oracle

torch.set_num_threads(1)
transformers.utils.logging.disable_progress_bar()

SEED, SEQUENCE, ROWS_A_STEP, WINDOW = 3, 48, 6, 16
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}

# Class of the config and its fields; sizes are odd on purpose, windows shorter than documents.
SIZES = dict(hidden_size=24, intermediate_size=50, num_hidden_layers=3, vocab_size=262,
             num_attention_heads=4, num_key_value_heads=2)
DEEPSEEK = dict(num_key_value_heads=4, n_routed_experts=6, num_experts_per_tok=3, moe_intermediate_size=14,
                n_shared_experts=2, first_k_dense_replace=1, kv_lora_rank=10, qk_nope_head_dim=4, qk_rope_head_dim=6,
                v_head_dim=5)
FAMILIES = {
    "llama, free head": (transformers.LlamaConfig, dict(
        SIZES, hidden_size=20, head_dim=6, rms_norm_eps=1e-6, tie_word_embeddings=False)),
    "llama, tied": (transformers.LlamaConfig, dict(
        SIZES, num_attention_heads=3, num_key_value_heads=1, tie_word_embeddings=True)),
    "mistral": (transformers.MistralConfig, dict(SIZES, head_dim=6, sliding_window=20)),
    "qwen2": (transformers.Qwen2Config, dict(SIZES, tie_word_embeddings=True)),
    "qwen2, windows": (transformers.Qwen2Config, dict(
        SIZES, use_sliding_window=True, sliding_window=20, max_window_layers=1)),
    "qwen3": (transformers.Qwen3Config, dict(SIZES, head_dim=8)),
    "gpt2": (transformers.GPT2Config, dict(
        n_embd=24, n_layer=2, n_head=4, n_positions=64, vocab_size=262, resid_pdrop=0.0,
        embd_pdrop=0.0, attn_pdrop=0.0)),
    "gemma2": (transformers.Gemma2Config, dict(
        SIZES, head_dim=6, sliding_window=20, query_pre_attn_scalar=5, attn_logit_softcapping=5.0,
        final_logit_softcapping=3.0)),
    "gemma3": (transformers.Gemma3TextConfig, dict(
        SIZES, num_hidden_layers=7, head_dim=6, sliding_window=20, query_pre_attn_scalar=5)),
    "mixtral": (transformers.MixtralConfig, dict(SIZES, num_local_experts=3)),
    "qwen3_moe": (transformers.Qwen3MoeConfig, dict(
        SIZES, head_dim=8, num_experts=5, num_experts_per_tok=2, moe_intermediate_size=14, norm_topk_prob=True,
        mlp_only_layers=[1])),
    "deepseek_v2": (transformers.DeepseekV2Config, dict(
        SIZES | DEEPSEEK, q_lora_rank=None, n_group=3, topk_group=2, topk_method="group_limited_greedy")),
    "deepseek_v3": (transformers.DeepseekV3Config, dict(
        SIZES | DEEPSEEK, q_lora_rank=8, n_group=3, topk_group=2, num_nextn_predict_layers=0)),
}
# How the folder that ptrain begins with was saved: its numbers, the largest file, the prefix.
SAVED = [("fp32", "1GB", True), ("bf16", "20KB", True), ("fp16", "1GB", False)]
LAYOUTS = [dict(dp=1, shard=1, zero=1, micro_batch=3), dict(dp=1, shard=2, zero=3, micro_batch=1)]


def make_model(config_class, fields):
    torch.manual_seed(1)
    config = config_class(initializer_range=0.2, use_cache=False, attn_implementation="eager",
                          bos_token_id=None, eos_token_id=None, pad_token_id=None, **fields)
    config._experts_implementation = "eager"
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    with torch.no_grad():   # norms and biases that matter
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def load(folder, dtype=torch.float32):
    return transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=dtype, attn_implementation="eager", experts_implementation="eager").eval()


def save(model, folder, dtype, max_shard_size, with_prefix):
    model.to(DTYPES[dtype]).save_pretrained(folder, max_shard_size=max_shard_size)
    if not with_prefix:
        from safetensors.torch import load_file, save_file
        path = f"{folder}/model.safetensors"
        prefix = model.base_model_prefix + "."
        save_file({name.removeprefix(prefix): value for name, value in load_file(path).items()},
                  path, metadata={"format": "pt"})
    model.to(torch.float32)


def logits_of(model, batch):
    """Masks are given whole, so windows are put into them."""
    tokens, _, positions, visible = batch
    window = getattr(model.config, "sliding_window", None)
    types = getattr(model.config, "layer_types", None)
    place = torch.arange(tokens.shape[1])
    near = place[:, None] - place < (window or tokens.shape[1])

    def mask(seen):
        return torch.zeros(seen.shape).masked_fill(~seen, torch.finfo(torch.float32).min)

    masks = mask(visible & near)
    if types:
        masks = {"full_attention": mask(visible), "sliding_attention": masks}
    return model(input_ids=tokens, position_ids=positions, attention_mask=masks).logits


def recipe_of(folder, layout):
    return {
        "version": 1, "name": "weights", "seed": SEED, "model": {"hf": "weights"},
        "data": {"tokenizer": "byte", "train": [{"path": f"{folder}/text/*.txt"}],
                 "packing": {"window": WINDOW}, "cache": f"{folder}/cache"},
        "shapes": [{"name": "only", "sequence": SEQUENCE, "steps": 1,
                    "global_batch_tokens": SEQUENCE * ROWS_A_STEP}],
        # So small a rate leaves every weight as it is.
        "learning_rate": {"peak": 1e-300, "decay": "constant"},
        "parallel": layout, "cluster": {"ranks_per_node": layout["dp"] * layout["shard"]}}


def export(ptrain, *arguments, code=0, **settings):
    result = subprocess.run([ptrain, "export", *arguments], capture_output=True, text=True,
                            **settings)
    assert result.returncode == code, (arguments, result.returncode, result.stdout, result.stderr)
    return result


class Case:
    def __init__(self, folder, family, saved, layout, tools):
        self.folder, (self.ptrain, self.rows_tool) = folder, tools
        command.write_corpus(f"{folder}/text")
        os.makedirs(f"{folder}/given")
        model = make_model(*FAMILIES[family])
        save(model, f"{folder}/given/weights", *saved)
        self.model = load(f"{folder}/given/weights")   # what was saved, rounded as it is
        self.vocabulary = self.model.config.vocab_size
        path = f"{folder}/given/recipe.yaml"
        with open(path, "w") as file:
            json.dump(recipe_of(folder, layout), file)
        self.run = f"{folder}/run"
        result = subprocess.run([self.ptrain, "run", path, "--directory", self.run],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert result.returncode == 0, result.stdout[-4000:]

    def check(self):
        self.check_loss()
        self.check_round_trip()
        self.check_dtypes_and_shards()
        self.check_refusals()
        self.check_tokenizer_files()
        self.check_bad_weights()

    def check_loss(self):
        """The engine's first loss is transformers' on the same rows."""
        data = command.read_data(f"{self.run}/checkpoints/step-00000001")
        batch = oracle.batch_of(command.rows(
            self.rows_tool, f"{self.folder}/cache/{data['train_hash']}", SEED, SEQUENCE, WINDOW,
            ROWS_A_STEP))
        with torch.no_grad():
            truth = oracle.mean_loss(logits_of(self.model, batch), batch[1]).item()
        found = command.lines(f"{self.run}/metrics.jsonl")[0]["loss"]
        print(f"  loss {found:.7f}, transformers {truth:.7f}", flush=True)
        assert abs(found - truth) <= 1e-6 * truth, (found, truth)

    def check_round_trip(self):
        """fp32 comes out bit for bit, and computes the same logits."""
        out = f"{self.folder}/out"
        assert export(self.ptrain, self.run, "--to", out).stdout.strip() == out
        assert "256 ends" in open(f"{out}/TOKENS.md").read()
        again = load(out)
        self.same_weights(again, torch.float32)
        tokens = torch.randint(self.vocabulary, (2, 40), generator=torch.Generator().manual_seed(5))
        with torch.no_grad():
            assert torch.equal(again(tokens).logits, self.model(tokens).logits)
        config = json.load(open(f"{out}/config.json"))
        assert config["eos_token_id"] == 256 and config["pad_token_id"] == 257, config

    def same_weights(self, found, dtype):
        truth = self.model.state_dict()
        assert found.state_dict().keys() == truth.keys()
        for name, value in found.state_dict().items():
            routes = name.endswith(("gate.weight", "e_score_correction_bias"))   # DeepSeek's stay fp32
            assert value.dtype == dtype or routes, name
            assert torch.equal(value.to(dtype), truth[name].to(dtype)), name

    def check_dtypes_and_shards(self):
        checkpoint = f"{self.run}/checkpoints/step-00000001"
        for dtype in ("bf16", "fp16"):
            out = f"{self.folder}/{dtype}"
            export(self.ptrain, checkpoint, "--to", out, "--dtype", dtype,
                   "--max-shard-size", "10KB")
            files = [name for name in os.listdir(out) if name.endswith(".safetensors")]
            assert len(files) > 2 and os.path.exists(f"{out}/model.safetensors.index.json"), files
            self.same_weights(load(out, DTYPES[dtype]), DTYPES[dtype])
            assert load(out, "auto").dtype == DTYPES[dtype]   # as config.json says

    def check_refusals(self):
        out = f"{self.folder}/out"
        assert "is there already" in export(self.ptrain, self.run, "--to", out, code=2).stderr
        assert "not a run" in export(self.ptrain, self.folder, "--to", out + "2", code=2).stderr
        missing = f"{self.folder}/text/000.txt/below"   # a file is no folder
        export(self.ptrain, self.run, "--to", missing, code=15)
        full = f"{self.folder}/full"   # as on a full disk: no file may grow beyond 4 KiB
        result = export(
            self.ptrain, self.run, "--to", full, code=15, restore_signals=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
        assert "model.safetensors" in result.stderr and not os.path.exists(full), result.stderr
        assert "another disk" in result.stderr and "checkpoint.keep" not in result.stderr
        assert not [name for name in os.listdir(self.folder) if name.startswith(".tmp")]


    def check_tokenizer_files(self):
        """They come along from where the model began, the recipe's own first; nothing else does."""
        given, out = f"{self.folder}/given", f"{self.folder}/tokens"
        for name in ("tokenizer.json", "tokenizer.model", "generation_config.json", "other.json"):
            with open(f"{given}/weights/{name}", "w") as file:
                file.write('{"max_length": 20}')
        model = pathlib.Path(__file__).parents[2] / "fixtures/data/bpe.model"
        shutil.copy(model, f"{given}/own.model")
        result = subprocess.run(
            [self.ptrain, "run", f"{given}/recipe.yaml", "--directory", f"{self.folder}/pieces",
             "data.tokenizer=sentencepiece", "data.tokenizer_file=own.model"],
            capture_output=True, text=True)
        assert result.returncode == 0, result.stderr[-4000:]
        shown = export(self.ptrain, f"{self.folder}/pieces", "--to", out).stderr
        assert open(f"{out}/tokenizer.model", "rb").read() == open(model, "rb").read()
        for name in ("tokenizer.json", "generation_config.json"):
            assert open(f"{out}/{name}").read() == '{"max_length": 20}'
            assert f"weights/{name} as {name}" in shown
        assert not os.path.exists(f"{out}/other.json") and not os.path.exists(f"{out}/TOKENS.md")
        load(out)

    def check_bad_weights(self):
        """All that is wrong is said before a rank starts, and nothing is made."""
        from safetensors.torch import load_file, save_file
        bad = f"{self.folder}/given/weights"
        weights = {}
        for path in pathlib.Path(bad).glob("*.safetensors"):
            weights |= {name: value.clone() for name, value in load_file(path).items()}
        names = sorted(weights)
        weights["unknown.weight"] = weights.pop(names[1])
        weights[names[2]] = weights[names[2]][None].contiguous()
        weights[names[3]] = weights[names[3]].int()
        for name in os.listdir(bad):
            if name != "config.json":
                os.unlink(f"{bad}/{name}")
        save_file(weights, f"{bad}/model.safetensors", metadata={"format": "pt"})
        run = f"{self.folder}/bad"
        result = subprocess.run([self.ptrain, "run", f"{self.folder}/given/recipe.yaml",
                                 "--directory", run], capture_output=True, text=True)
        assert result.returncode == 15, (result.returncode, result.stderr)
        for part in (f"'{names[1]}' is missing", "'unknown.weight' is no parameter",
                     f"'{names[2]}' has the shape", f"'{names[3]}' is I32", "config.json"):
            assert part in result.stderr, (part, result.stderr)
        assert not os.path.exists(run)


def main(*tools):
    tools = [os.path.abspath(tool) for tool in tools]
    for i, family in enumerate(FAMILIES):
        for j, saved in enumerate(SAVED if i == 0 else SAVED[i % 3:i % 3 + 1]):
            layout = LAYOUTS[(i + j) % 2]
            print(f"{family}; {saved[0]}, files of {saved[1]}; {layout}", flush=True)
            with tempfile.TemporaryDirectory() as folder:
                Case(folder, family, saved, layout, tools).check()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
