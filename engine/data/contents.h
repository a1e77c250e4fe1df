#pragma once

#include <cstdint>
#include <vector>

#include "engine/data/cache.h"
#include "engine/data/sources.h"

namespace ptrain::data {

enum class Side { kTrain, kValidation, kLeftOut };

struct KnownDocument {
  std::uint64_t hash = 0;  // of its bytes
  std::int64_t bytes = 0;
  Side side = Side::kTrain;
};

struct KnownFile {
  SourceFile file;
  std::vector<KnownDocument> documents;
};

// Reads all files once and says which document goes where. The split depends on the documents'
// bytes alone: equal ones stay on one side, and one that is added or renamed moves no other.
std::vector<KnownFile> read_contents(const recipe::Data& data, const Sources& sources);

// What the tokens of each side are made of.
ContentHashes content_hashes(const recipe::Data& data, const std::vector<KnownFile>& files);

}  // namespace ptrain::data
