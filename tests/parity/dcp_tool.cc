// Writes and reads checkpoints for dcp_roundtrip.py:
//   dcp_tool write FOLDER RANKS    what `write` says, cut into unequal runs that split rows
//   dcp_tool read FOLDER RANKS     all tensors (flattened) and values of a checkpoint as JSON
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>

#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/folder.h"

namespace {

using namespace ptrain;
using nlohmann::json;

// Element i of a tensor is i / 4.
std::vector<double> counting(std::int64_t begin, std::int64_t end) {
  std::vector<double> values;
  for (std::int64_t i = begin; i < end; ++i) values.push_back(static_cast<double>(i) / 4);
  return values;
}

std::int64_t cut(std::int64_t count, int part, int parts) {
  return part == parts ? count : count * part * part / (parts * parts);  // unequal, inside rows
}

struct Shard {
  std::vector<double> doubles;
  std::vector<float> floats;
};

checkpoint::TensorItem item(const std::string& key, DType dtype,
                            const std::vector<std::int64_t>& shape, int rank, int ranks,
                            Shard& shard) {
  const std::int64_t count = dcp::volume(shape);
  const std::int64_t begin = cut(count, rank, ranks);
  const std::int64_t end = cut(count, rank + 1, ranks);
  shard.doubles = counting(begin, end);
  shard.floats.assign(shard.doubles.begin(), shard.doubles.end());
  void* data = dtype == DType::kFloat64 ? static_cast<void*>(shard.doubles.data())
                                        : static_cast<void*>(shard.floats.data());
  return {key, dtype, shape, begin, end, data};
}

// A part of the columns, all rows of it.
checkpoint::TensorItem columns(const std::string& key, const std::vector<std::int64_t>& shape,
                               int rank, int ranks, Shard& shard) {
  const std::int64_t begin = cut(shape[1], rank, ranks), end = cut(shape[1], rank + 1, ranks);
  for (std::int64_t row = 0; row < shape[0]; ++row)
    for (const double value : counting(row * shape[1] + begin, row * shape[1] + end))
      shard.floats.push_back(static_cast<float>(value));
  checkpoint::TensorItem item{key, DType::kFloat32,          shape,
                              0,   shape[0] * (end - begin), shard.floats.data()};
  item.part = {{0, begin}, {shape[0], end - begin}};
  return item;
}

std::vector<checkpoint::TensorItem> tensors_of(int rank, int ranks, std::vector<Shard>& shards) {
  return {
      item("model.layers.0.weight", DType::kFloat32, {17, 6}, rank, ranks, shards[0]),
      item("model.cube", DType::kFloat64, {3, 5, 7}, rank, ranks, shards[1]),
      item("model.large", DType::kFloat32, {300, 301}, rank, ranks, shards[2]),
      item("optim.state.layers.0.weight.exp_avg", DType::kFloat32, {17, 6}, rank, ranks, shards[3]),
      item("optim.state.layers.0.weight.step", DType::kFloat32, {}, rank, ranks, shards[4]),
      columns("model.columns", {12, 20}, rank, ranks, shards[5])};
}

void write(const std::string& folder, comm::Communicator& world) {
  std::vector<Shard> shards(6), unread(6);
  checkpoint::Items items;
  items.tensors = tensors_of(world.rank(), world.size(), shards);
  items.values = {{"train.step", 7},
                  {"train.tokens", 5000000000},
                  {"train.rate", 0.1},
                  {"train.flag", true},
                  {"train.name", "déjà vu"},
                  {"data.list", {1, 2.5, "x", {true, nullptr}}},
                  {"optim.param_groups.layers.0.weight.betas", {0.9, 0.95}}};
  checkpoint::save(folder, items, world, [&](int rank) {
    return checkpoint::Items{tensors_of(rank, world.size(), unread), {}};
  });
}

json read(const std::string& folder, comm::Communicator& world) {
  const dcp::Metadata metadata = checkpoint::read_folder_metadata(folder);
  checkpoint::Items items;
  std::map<std::string, std::vector<double>> floats;
  std::map<std::string, std::vector<std::int64_t>> integers;
  for (const auto& [key, entry] : metadata.tensors) {
    const std::int64_t count = dcp::volume(entry.shape);
    const std::int64_t begin = cut(count, world.rank(), world.size());
    const std::int64_t end = cut(count, world.rank() + 1, world.size());
    if (entry.dtype == "int32") continue;
    const auto size = static_cast<std::size_t>(end - begin);
    const bool whole = entry.dtype == "int64";
    if (whole)
      integers[key].resize(size);
    else
      floats[key].resize(size);
    void* data =
        whole ? static_cast<void*>(integers[key].data()) : static_cast<void*>(floats[key].data());
    const DType dtype = whole ? DType::kInt64 : DType::kFloat64;
    items.tensors.push_back({key, dtype, entry.shape, begin, end, data});
  }
  for (const auto& [key, place] : metadata.values) items.values.push_back({key, {}});
  json found = json::object();
  for (auto& value : checkpoint::Source(folder, world).load(items)) found[value.key] = value.value;
  for (const auto& [key, values] : floats) found[key] = values;
  for (const auto& [key, values] : integers) found[key] = values;
  return found;
}

// One thread a rank; the parts of a tensor are joined in rank order.
json on_ranks(const std::string& mode, const std::string& folder, int ranks) {
  auto worlds = comm::make_threads(ranks);
  std::vector<json> results(worlds.size());
  std::vector<std::exception_ptr> errors(worlds.size());
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < worlds.size(); ++r)
    threads.emplace_back([&, r] {
      try {
        if (mode == "write")
          write(folder, *worlds[r]);
        else
          results[r] = read(folder, *worlds[r]);
      } catch (...) {
        errors[r] = std::current_exception();
      }
      worlds[r]->close();
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& error : errors)
    if (error) std::rethrow_exception(error);
  for (std::size_t r = 1; r < results.size(); ++r)
    for (auto& [key, value] : results[0].items())
      if (value.is_array() && !key.starts_with("values.") && !key.starts_with("optim.param_groups"))
        value.insert(value.end(), results[r][key].begin(), results[r][key].end());
  return results[0];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  try {
    const json found = on_ranks(argv[1], argv[2], std::stoi(argv[3]));
    if (argv[1] == std::string("read")) std::cout << found.dump() << "\n";
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
