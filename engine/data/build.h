#pragma once

#include <string>
#include <vector>

#include "engine/data/contents.h"
#include "engine/data/tokenizer.h"

namespace ptrain::data {

struct NewIndex {
  std::string path;  // without .idx/.bin
  std::string content_hash;
};

// Reads the files once more and writes the index of one side. Without a tokenizer the files hold
// tokens. EngineError (kUnusable) when a document is no longer what it was, or is none of its
// format.
void build_index(const recipe::Data& data, const Tokenizer* tokenizer,
                 const std::vector<KnownFile>& files, Side side, const NewIndex& index);

}  // namespace ptrain::data
