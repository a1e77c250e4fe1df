#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/safetensors/header.h"

namespace ptrain::safetensors {

// A tensor and the file it lies in.
struct Stored {
  std::string file;
  std::int64_t data = 0;  // where the file's data begins
  Tensor tensor;
  std::int64_t begin() const { return data + tensor.begin; }  // in the file
};

// What a folder of Hugging Face weights holds.
struct Contents {
  std::map<std::string, Stored> tensors;
  std::vector<std::string> problems;        // what is wrong with the files, each on its own
  std::map<std::string, std::string> lost;  // tensors of files whose headers cannot be read
  bool is_pickled = false;                  // its weights are those of torch.save, none of ours
};

// How the folder's files are read. Both get plain names of files.
struct Files {
  std::function<std::int64_t(const std::string& name)> size;  // -1: there is no such regular file
  std::function<Result<std::string>(const std::string& name, std::int64_t offset,
                                    std::int64_t bytes)>
      read;
};

// Reads headers alone: of model.safetensors, else of the files that the index names.
Contents read_contents(const Files& files);

}  // namespace ptrain::safetensors
