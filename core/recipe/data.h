#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/packing/strategy.h"

namespace ptrain::recipe {

// What a recipe says of its texts; see recipe.h.

enum class Format { kAuto, kText, kJsonl, kBin, kMegatron };  // auto: by the file's name

struct DataSource {
  std::string path;  // a file or a glob ('**' matches folders); relative to the recipe
  Format format = Format::kAuto;
  double weight = 1;  // train: how often its documents come in an epoch
  bool operator==(const DataSource&) const = default;
};

struct Packing {
  packing::Strategy strategy = packing::Strategy::kBestFitDecreasing;
  std::int64_t window = 4096;  // documents packed together
  bool operator==(const Packing&) const = default;
};

struct Data {
  std::string tokenizer = "byte";
  std::vector<DataSource> train;
  std::vector<DataSource> validation;  // empty: validation_fraction of the documents of train
  double validation_fraction = 0.0;
  std::int64_t end_token = -1;     // that ends a document in a file of tokens; -1: none
  std::int64_t max_documents = 0;  // 0: all
  Packing packing;
  std::string cache;  // folder of the token index; empty: the user's cache folder
  bool operator==(const Data&) const = default;
};

}  // namespace ptrain::recipe
