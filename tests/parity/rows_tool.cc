// The packed rows of an index as JSON, for the tests in Python: the ranks and micro-batches of a
// run take these rows in this order, whatever its layout.
//   rows_tool INDEX SEED SEQUENCE WINDOW NUM_ROWS    training: goes round and round
//   rows_tool INDEX SEED SEQUENCE WINDOW 0           validation: one pass
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/data/loader.h"

namespace {

using namespace ptrain;

nlohmann::json to_json(const data::MicroBatch& row) {
  nlohmann::json documents;
  for (const auto& span : row.documents) documents.push_back({span.begin, span.end});
  return {{"tokens", row.tokens},
          {"targets", row.targets},
          {"positions", row.positions},
          {"documents", documents}};
}

nlohmann::json rows_of(const char* const* arguments) {
  const std::int64_t num_rows = std::stoll(arguments[4]);
  data::Loader::Options options;
  options.seed = std::stoull(arguments[1]);
  options.sequence = std::stoll(arguments[2]);
  options.packing.window = std::stoll(arguments[3]);
  options.repeat = num_rows > 0;
  data::Loader loader(data::open_index(arguments[0]), options);
  nlohmann::json rows = nlohmann::json::array();
  while (num_rows > 0 ? std::ssize(rows) < num_rows : !loader.at_end())
    rows.push_back(to_json(loader.next(0, 1, 1, 1).micro_batches.front()));
  return rows;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  try {
    std::cout << rows_of(argv + 1).dump() << "\n";
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
