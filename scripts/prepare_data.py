#!/usr/bin/env python3
"""Turns text into tokens that ptrain reads: Megatron's pair of files, OUTPUT.bin and OUTPUT.idx.

    prepare_data.py --tokenizer tokenizer.json --end-of-document '<|endoftext|>' --output corpus FILE...

The tokenizer is a file of the Hugging Face library `tokenizers`; no code of a model is run and
nothing is fetched. A FILE that ends in .jsonl holds a document {"text": ...} a line; any other is
one document. In the recipe:

    data:
      tokenizer: none
      train:
        - path: corpus.bin
    model:
      vocab_size: ...     # printed at the end
"""

import argparse
import array
import json
import os
import struct
import sys

NARROW, WIDE = (8, "H", 2), (4, "i", 4)  # Megatron's code of the type, that of array, bytes


def documents(paths):
    """(place, text) of every document."""
    for path in paths:
        if not path.endswith((".jsonl", ".ndjson")):
            with open(path, encoding="utf-8") as file:
                yield path, file.read()
            continue
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield f"{path}:{number}", text_of(f"{path}:{number}", line)


def text_of(place, line):
    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        raise SystemExit(f"prepare_data: {place}: {error}") from error
    if not isinstance(value, dict) or not isinstance(value.get("text"), str):
        raise SystemExit(f'prepare_data: {place}: expected an object with "text"')
    return value["text"]


def write_index(path, code, width, lengths):
    offsets = array.array("q", [0])
    for length in lengths[:-1]:
        offsets.append(offsets[-1] + length * width)
    with open(path, "wb") as file:
        file.write(b"MMIDIDX\0\0")
        file.write(struct.pack("<QBQQ", 1, code, len(lengths), len(lengths) + 1))
        array.array("i", lengths).tofile(file)
        offsets.tofile(file)
        array.array("q", range(len(lengths) + 1)).tofile(file)


def write_tokens(path, tokenizer, end, kind, paths):
    """Writes the .bin; the number of tokens of each document."""
    lengths = []
    with open(path, "wb") as file:
        for place, text in documents(paths):
            ids = tokenizer.encode(text, add_special_tokens=False).ids + [end]
            if len(ids) >= 2**31:
                raise SystemExit(f"prepare_data: {place}: longer than 2^31 tokens; split it")
            array.array(kind, ids).tofile(file)
            lengths.append(len(ids))
    return lengths


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--tokenizer", required=True, help="tokenizer.json")
    parser.add_argument("--end-of-document", required=True, help="token put after each document")
    parser.add_argument("--output", required=True, help="path without .bin and .idx")
    return parser.parse_args()


def main():
    arguments = read_arguments()
    from tokenizers import Tokenizer  # after the arguments: --help works without it

    tokenizer = Tokenizer.from_file(arguments.tokenizer)
    end = tokenizer.token_to_id(arguments.end_of_document)
    if end is None:
        raise SystemExit(f"prepare_data: the tokenizer has no token '{arguments.end_of_document}'")
    size = tokenizer.get_vocab_size(with_added_tokens=True)
    code, kind, width = NARROW if size < 65500 else WIDE
    unfinished = [f"{arguments.output}{suffix}.tmp-{os.getpid()}" for suffix in (".bin", ".idx")]
    try:
        lengths = write_tokens(unfinished[0], tokenizer, end, kind, arguments.files)
        if not lengths:
            raise SystemExit("prepare_data: the files hold no document")
        write_index(unfinished[1], code, width, lengths)
        os.replace(unfinished[0], arguments.output + ".bin")
        os.replace(unfinished[1], arguments.output + ".idx")
    finally:
        for path in unfinished:
            if os.path.exists(path):
                os.remove(path)
    print(json.dumps({"documents": len(lengths), "tokens": sum(lengths), "vocab_size": size}))


if __name__ == "__main__":
    try:
        main()
    except (OSError, UnicodeDecodeError) as error:
        sys.exit(f"prepare_data: {error}")
