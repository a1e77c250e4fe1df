#pragma once

#include <string>
#include <vector>

#include "engine/data/contents.h"

namespace ptrain::data {

// Reads the files once more and writes the index of one side as PATH.bin and PATH.idx. EngineError
// (kUnusable) when a document is no longer what it was, or is none of its format.
void build_index(const recipe::Data& data, const std::vector<KnownFile>& files, Side side,
                 const std::string& path, const std::string& content_hash);

}  // namespace ptrain::data
