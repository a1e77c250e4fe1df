#!/usr/bin/env python3
"""Turns text into tokens that ptrain reads: Megatron's pair of files, OUTPUT.bin and OUTPUT.idx, and
OUTPUT.silent, pairs of u64 that say which tokens are no targets.

    prepare_data.py --tokenizer tokenizer.json --end-of-document '<|endoftext|>' --output corpus FILE...

The tokenizer is a file of the Hugging Face library `tokenizers`; no code of a model is run and
nothing is fetched. A FILE that ends in .jsonl holds a document a line: {"text": ...}, {"prompt": ...,
"completion": ...} or {"messages": [{"role": ..., "content": ...}, ...]}; prompts, and messages of
others than the assistant, are no targets. Any other FILE is one document. In the recipe:

    data:
      tokenizer: none
      train:
        - path: corpus.bin
    model:
      vocab_size: ...     # printed at the end
"""

import argparse
import array
import codecs
import itertools
import json
import os
import struct
import sys

SUFFIXES = (".bin", ".idx", ".silent")
ROLES = ("system", "developer", "user", "assistant", "tool", "function")  # as ptrain knows them
NARROW, WIDE = (8, "H", 2), (4, "i", 4)  # Megatron's code of the type, that of array, bytes


def documents(paths):
    """(place, parts) of every document; a part is (text, whether it is learned)."""
    for path in paths:
        with open(path, "rb") as file:  # bytes: line ends of a text stay as they are
            if not path.endswith((".jsonl", ".ndjson")):
                yield path, [(decoded(path, file.read()), True)]
                continue
            for number, line in enumerate(file, 1):
                line = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
                if line.strip():
                    place = f"{path}:{number}"
                    yield place, parts_of(place, decoded(place, line))


def decoded(place, data):
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SystemExit(f"prepare_data: {place}: not UTF-8 at its byte {error.start + 1}") from error


def text_of(place, value, key):
    if not isinstance(value, dict) or not isinstance(value.get(key), str):
        raise SystemExit(f'prepare_data: {place}: expected an object with the text "{key}"')
    if any("\ud800" <= letter <= "\udfff" for letter in value[key]):
        raise SystemExit(f'prepare_data: {place}: "{key}" has half of a surrogate pair')
    return value[key]


def parts_of(place, line):
    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        raise SystemExit(f"prepare_data: {place}: {error}") from error
    except RecursionError as error:
        raise SystemExit(f"prepare_data: {place}: JSON that is nested too deep") from error
    # Public sets of conversations repeat the first message as `prompt`: no document without a completion.
    has_answer = isinstance(value, dict) and ("completion" in value or "prompt" in value and "messages" not in value)
    if isinstance(value, dict) and ("text" in value) + ("messages" in value) + has_answer > 1:
        raise SystemExit(f"prepare_data: {place}: it has more than one of 'text', 'messages', and "
                         "'prompt' with 'completion'")
    if isinstance(value, dict) and "messages" in value:
        return parts_of_messages(place, value["messages"])
    if has_answer:
        return [(text_of(place, value, "prompt"), False), (text_of(place, value, "completion"), True)]
    return [(text_of(place, value, "text"), True)]


def parts_of_messages(place, messages):
    """As ptrain writes them; neighbours that are learned alike are one part."""
    if not isinstance(messages, list) or not messages:
        raise SystemExit(f'prepare_data: {place}: "messages" is not a list of messages')
    parts, learned = [], False
    for message in messages:
        role, content = text_of(place, message, "role"), text_of(place, message, "content")
        if role not in ROLES:
            raise SystemExit(f"prepare_data: {place}: a message has the role {role!r}, which is none of "
                             + ", ".join(ROLES))
        learned = role == "assistant"
        parts += [(f"<|im_start|>{role}\n", False), (f"{content}<|im_end|>", learned), ("\n", False)]
    groups = itertools.groupby(parts, key=lambda part: part[1])
    return [("".join(text for text, _ in group), is_loud) for is_loud, group in groups] + [
        ("", learned)]  # the end of the document


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


def encode(tokenizer, end, parts):
    """The tokens of a document, and the ranges of them that are no targets."""
    ids, silent = [], []
    for number, (text, learned) in enumerate(parts, 1):
        begin = len(ids)
        ids += tokenizer.encode(text, add_special_tokens=False).ids
        if number == len(parts):
            ids.append(end)
        if learned or begin == len(ids):
            continue
        if silent and silent[-1][1] == begin:
            silent[-1][1] = len(ids)
        else:
            silent.append([begin, len(ids)])
    return ids, silent


def write_tokens(path, tokenizer, end, kind, paths):
    """Writes the .bin; the number of tokens of each document, and the silent ranges of all."""
    lengths, silent, total = [], array.array("Q"), 0
    with open(path, "wb") as file:
        for place, parts in documents(paths):
            ids, ranges = encode(tokenizer, end, parts)
            if len(ids) >= 2**31:
                raise SystemExit(f"prepare_data: {place}: longer than 2^31 tokens; split it")
            array.array(kind, ids).tofile(file)
            lengths.append(len(ids))
            silent.extend(total + bound for one in ranges for bound in one)
            total += len(ids)
    return lengths, silent


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--tokenizer", required=True, help="tokenizer.json")
    parser.add_argument("--end-of-document", required=True, help="token put after each document")
    parser.add_argument("--output", required=True, help="path without .bin and .idx")
    return parser.parse_args()


def read_tokenizer(path):
    from tokenizers import Tokenizer  # after the arguments: --help works without it

    with open(path, encoding="utf-8") as file:
        text = file.read()
    try:
        return Tokenizer.from_str(text)
    except Exception as error:  # the library has no narrower class
        raise SystemExit(f"prepare_data: {path}: no tokenizer.json: {error}") from error


def main():
    arguments = read_arguments()
    tokenizer = read_tokenizer(arguments.tokenizer)
    end = tokenizer.token_to_id(arguments.end_of_document)
    if end is None:
        raise SystemExit(f"prepare_data: the tokenizer has no token '{arguments.end_of_document}'")
    size = tokenizer.get_vocab_size(with_added_tokens=True)
    code, kind, width = NARROW if size < 65500 else WIDE
    unfinished = [f"{arguments.output}{suffix}.tmp-{os.getpid()}" for suffix in SUFFIXES]
    try:
        lengths, silent = write_tokens(unfinished[0], tokenizer, end, kind, arguments.files)
        if not lengths:
            raise SystemExit("prepare_data: the files hold no document")
        write_index(unfinished[1], code, width, lengths)
        with open(unfinished[2], "wb") as file:
            silent.tofile(file)
        for path, suffix in zip(unfinished, SUFFIXES):
            os.replace(path, arguments.output + suffix)
    except OSError as error:
        if error.filename is None:  # as of a full disk
            raise SystemExit(f"prepare_data: cannot write {arguments.output}: {error.strerror}") from error
        raise
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
