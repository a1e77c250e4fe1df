#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/data/index_format.h"
#include "engine/data/sources.h"

namespace ptrain::data {

// Takes the documents of a file one after the other, each in pieces.
class DocumentSink {
 public:
  virtual ~DocumentSink() = default;
  virtual void piece(std::span<const std::byte> bytes) = 0;  // of tokens: whole ones
  virtual void silent(std::span<const TokenRange>) {}  // before end: no targets, from its first
  virtual void end(std::int64_t number) = 0;           // of the document; counts from 1
};

// The documents of a file as its format has them: the whole text; each line that is not blank (the
// number is the line's); the tokens up to and with an end token; the documents of a table. Beside a
// table PATH.silent may say which tokens are no targets: pairs of u64, begin and end in tokens of
// the .bin, ascending.
// EngineError (kUnusable) with place and reason for a file that is not of its format.
void read_documents(const SourceFile& file, std::int64_t end_token, DocumentSink& sink);

// Bytes of a token in a file of tokens; 1 for text.
std::int64_t token_bytes(const SourceFile& file);

}  // namespace ptrain::data
