#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/packing/strategy.h"

namespace ptrain::recipe {

// What a recipe says of its texts; see recipe.h.

enum class Format { kAuto, kText, kJsonl, kBin, kMegatron };  // auto: by the file's name

// Which tokens of documents with questions and answers are targets: those of answers, or all.
enum class LossOn { kAnswers, kAll };

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
  std::string tokenizer_file;  // sentencepiece: the .model, relative to the recipe
  std::string tokenizer_hash;  // of that file; empty in a recipe: any
  std::vector<DataSource> train;
  std::vector<DataSource> validation;  // empty: validation_fraction of the documents of train
  double validation_fraction = 0.0;
  std::int64_t end_token = -1;     // that ends a document in a file of tokens; -1: none
  std::int64_t max_documents = 0;  // 0: all
  LossOn loss_on = LossOn::kAnswers;
  Packing packing;
  std::string cache;  // folder of the token index; empty: the user's cache folder
  bool operator==(const Data&) const = default;
};

}  // namespace ptrain::recipe
