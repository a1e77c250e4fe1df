"""scripts/prepare_data.py: its files are read back number by number, and by `ptrain data`.

prepare_data_test.py SOURCE_DIR PTRAIN"""

import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

SOURCE, PTRAIN = pathlib.Path(sys.argv[1]), sys.argv[2]
END = "<|endoftext|>"
TEXTS = ["the cat sat\r\non the mat", "a ünïcode line\nand another", "", "the end"]

RECIPE = """
version: 1
name: prepared
model: {hidden_size: 8, intermediate_size: 8, num_hidden_layers: 1, num_attention_heads: 2,
        vocab_size: %d}
data:
  tokenizer: none
  cache: cache
  train:
    - path: corpus.bin
shapes:
  - {name: only, sequence: 8, global_batch_tokens: 8, steps: 1}
"""


def make_tokenizer(path):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=[END], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(TEXTS, trainer)
    tokenizer.save(str(path))
    return tokenizer


def run(folder, *files, output="corpus", end=END, tokenizer="tokenizer.json", before=()):
    return subprocess.run(
        [*before, sys.executable, SOURCE / "scripts/prepare_data.py", "--tokenizer", folder / tokenizer,
         "--end-of-document", end, "--output", folder / output, *files],
        capture_output=True, text=True)


def check_files(folder, expected):
    idx = (folder / "corpus.idx").read_bytes()
    assert idx[:9] == b"MMIDIDX\0\0"
    version, code, sequences, bounds = struct.unpack_from("<QBQQ", idx, 9)
    assert (version, code, sequences, bounds) == (1, 8, len(expected), len(expected) + 1)
    lengths = struct.unpack_from(f"<{sequences}i", idx, 34)
    offsets = struct.unpack_from(f"<{sequences}q", idx, 34 + 4 * sequences)
    documents = struct.unpack_from(f"<{bounds}q", idx, 34 + 12 * sequences)
    assert documents == tuple(range(bounds))
    tokens = (folder / "corpus.bin").read_bytes()
    for ids, length, offset in zip(expected, lengths, offsets):
        assert list(struct.unpack_from(f"<{length}H", tokens, offset)) == ids


def check_ptrain(folder, size, expected):
    (folder / "recipe.yaml").write_text(RECIPE % size)
    result = subprocess.run([PTRAIN, "data", folder / "recipe.yaml", "--json"],
                            capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    train = json.loads(result.stdout)["train"]
    assert train["documents"] == len(expected)
    assert train["tokens"] == sum(len(ids) for ids in expected)


CHAT = ("<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n", "yo<|im_end|>", "\n")


def check_silent(folder, tokenizer, end):
    """Questions are no targets; as many targets as counted by hand reach a loader."""
    lines = [{"prompt": "the cat", "completion": " sat"}, {"text": "the mat"},
             {"prompt": "hi", "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]}]
    (folder / "ask.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    result = run(folder, folder / "ask.jsonl", output="ask")
    assert result.returncode == 0, result.stderr
    count = lambda text: len(tokenizer.encode(text).ids)
    prompt, answer, text = count("the cat"), count(" sat") + 1, count("the mat") + 1
    before, said, after = (count(part) for part in CHAT)
    chat = prompt + answer + text
    bounds = (0, prompt, chat, chat + before, chat + before + said, chat + before + said + after)
    silent = (folder / "ask.silent").read_bytes()
    assert struct.unpack(f"<{len(silent) // 8}Q", silent) == bounds, bounds
    tokens = (folder / "ask.bin").read_bytes()
    assert struct.unpack_from("<H", tokens, 2 * (prompt + answer - 1)) == (end,)
    (folder / "ask.yaml").write_text((RECIPE % 400).replace("corpus.bin", "ask.bin"))
    result = subprocess.run([PTRAIN, "data", folder / "ask.yaml"], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    (folder / "ask.silent").write_bytes(silent[:-8])
    result = subprocess.run([PTRAIN, "data", folder / "ask.yaml"], capture_output=True, text=True)
    assert result.returncode == 15 and "ask.silent" in result.stderr, result.stderr


def check_refusals(folder):
    (folder / "bad.jsonl").write_text('{"text": "a"}\n{"txt": 1}\n')
    for name, data in [("latin.jsonl", b'{"text": "a"}\n{"text": "caf\xe9"}\n'), ("latin.txt", b"caf\xe9"),
                       ("role.jsonl", b'{"messages": [{"role": "Assistant", "content": "a"}]}'),
                       ("two.jsonl", b'{"text": "a", "prompt": "b", "completion": "c"}'),
                       ("half.jsonl", b'{"text": "a\\ud800"}\n'), ("deep.jsonl", b"[" * 100000)]:
        (folder / name).write_bytes(data)
    for result, word in [(run(folder, folder / "bad.jsonl", output="no"), "bad.jsonl:2"),
                         (run(folder, folder / "latin.jsonl", output="no"), "latin.jsonl:2: not UTF-8"),
                         (run(folder, folder / "latin.txt", output="no"), "latin.txt: not UTF-8"),
                         (run(folder, folder / "half.jsonl", output="no"), "half.jsonl:1: "),
                         (run(folder, folder / "role.jsonl", output="no"), "role.jsonl:1: a message has the role 'Assistant'"),
                         (run(folder, folder / "two.jsonl", output="no"), "two.jsonl:1: it has more than one of"),
                         (run(folder, folder / "deep.jsonl", output="no"), "deep.jsonl:1: "),
                         (run(folder, folder / "one.txt", output="no", tokenizer="one.txt"),
                          "no tokenizer.json"),
                         (run(folder, folder / "one.txt", output="no", tokenizer="no.json"), "No such file"),
                         (run(folder, folder / "missing.txt", output="no"), "missing.txt"),
                         (run(folder, folder / "one.txt", output="no", before=("prlimit", "--fsize=8")),
                          f"cannot write {folder}/no: File too large"),
                         (run(folder, folder / "one.txt", output="no", end="<none>"), "<none>")]:
        assert result.returncode != 0 and word in result.stderr, result.stderr
        assert "Traceback" not in result.stderr
        assert not list(folder.glob("no.*"))


def check_left_out(folder):
    """What a pattern names but nothing is read from is told."""
    (folder / "few").mkdir()
    (folder / "few/a.jsonl").write_text('{"text": "abc"}\n')
    (folder / "few/b.jsonl").write_text("")
    recipe = RECIPE.replace("none", "byte").replace("corpus.bin", "few/*.jsonl") % 320
    (folder / "few.yaml").write_text(recipe)
    result = subprocess.run([PTRAIN, "data", folder / "few.yaml"], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "files left out, empty or not regular: 1" in result.stdout, result.stdout


def check_roles():
    """prepare_data.py, ptrain and the reference of recipes know the same ones."""
    listed = re.search(r"kRoles\[\] = \{(.*?)\};", (SOURCE / "engine/data/encode.cc").read_text(), re.S).group(1)
    roles = re.findall(r'"(\w+)"', listed)
    script = re.search(r"^ROLES = \((.*?)\)", (SOURCE / "scripts/prepare_data.py").read_text(), re.M).group(1)
    assert re.findall(r'"(\w+)"', script) == roles and len(roles) > 1, (script, roles)
    assert ", ".join(roles) in (SOURCE / "docs/recipe.md").read_text(), roles


def main():
    check_roles()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        tokenizer = make_tokenizer(folder / "tokenizer.json")
        (folder / "one.txt").write_bytes(TEXTS[0].encode())  # its line ends stay
        lines = "".join(json.dumps({"text": text}) + "\n" for text in TEXTS[1:])
        (folder / "more.jsonl").write_bytes(b"\xef\xbb\xbf" + lines.encode())
        end = tokenizer.token_to_id(END)
        expected = [tokenizer.encode(text).ids + [end] for text in TEXTS]
        result = run(folder, folder / "one.txt", folder / "more.jsonl")
        assert result.returncode == 0, result.stderr
        size = json.loads(result.stdout)["vocab_size"]
        assert size == tokenizer.get_vocab_size()
        check_files(folder, expected)
        check_ptrain(folder, size, expected)
        check_silent(folder, tokenizer, end)
        check_refusals(folder)
        check_left_out(folder)


main()
