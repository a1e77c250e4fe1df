#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "engine/data/sources.h"

namespace ptrain::data {

// Takes the documents of a file one after the other, each in pieces.
class DocumentSink {
 public:
  virtual ~DocumentSink() = default;
  virtual void piece(std::span<const std::byte> bytes) = 0;  // of tokens: whole ones
  virtual void end(std::int64_t number) = 0;                 // of the document; counts from 1
};

// The documents of a file as its format has them: the whole text; each line that is not blank (the
// number is the line's); the tokens up to and with an end token; the documents of a table.
// EngineError (kUnusable) with place and reason for a file that is not of its format.
void read_documents(const SourceFile& file, std::int64_t end_token, DocumentSink& sink);

// Bytes of a token in a file of tokens; 1 for text.
std::int64_t token_bytes(const SourceFile& file);

}  // namespace ptrain::data
