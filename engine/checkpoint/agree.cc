#include "engine/checkpoint/agree.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <optional>

#include "core/base/divide.h"
#include "engine/base/engine_error.h"

namespace ptrain::checkpoint {

namespace {

constexpr std::int64_t kWord = sizeof(std::int64_t);

void gather_words(std::vector<std::int64_t>& words, const std::vector<std::int64_t>& counts,
                  comm::Communicator& world) {
  std::vector<std::int64_t> offsets(counts.size(), 0);
  std::partial_sum(counts.begin(), counts.end() - 1, offsets.begin() + 1);
  world.all_gather_v(reinterpret_cast<std::byte*>(words.data()), DType::kInt64, offsets, counts)
      ->wait();
}

std::vector<std::int64_t> sizes_of_all(const std::string& mine, comm::Communicator& world) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(world.size()), 0);
  sizes[static_cast<std::size_t>(world.rank())] = std::ssize(mine);
  gather_words(sizes, std::vector<std::int64_t>(sizes.size(), 1), world);
  return sizes;
}

// code, message, hint; each ended by a zero byte. Empty: no failure.
std::string pack(const std::optional<Error>& error) {
  if (!error) return {};
  std::string text = std::to_string(static_cast<int>(error->code));
  for (const std::string& part : {error->message, error->hint}) text.append(1, '\0').append(part);
  return text;
}

Error unpack(const std::string& text) {
  const std::size_t first = text.find('\0');
  const std::size_t second = text.find('\0', first + 1);
  return {static_cast<ExitCode>(std::stoi(text.substr(0, first))),
          text.substr(first + 1, second - first - 1),
          text.substr(second + 1),
          {}};
}

}  // namespace

std::vector<std::string> gather_bytes(const std::string& mine, comm::Communicator& world) {
  const auto ranks = static_cast<std::size_t>(world.size());
  const std::vector<std::int64_t> sizes = sizes_of_all(mine, world);
  std::vector<std::int64_t> counts;
  for (const std::int64_t size : sizes) counts.push_back(divide_up(size, kWord));
  std::vector<std::int64_t> words(
      static_cast<std::size_t>(std::reduce(counts.begin(), counts.end())), 0);
  auto* bytes = reinterpret_cast<char*>(words.data());
  const std::int64_t start = kWord * std::reduce(counts.begin(), counts.begin() + world.rank());
  std::copy(mine.begin(), mine.end(), bytes + start);
  if (!words.empty()) gather_words(words, counts, world);

  std::vector<std::string> all;
  for (std::size_t r = 0; r < ranks; bytes += kWord * counts[r++])
    all.emplace_back(bytes, static_cast<std::size_t>(sizes[r]));
  return all;
}

std::vector<std::string> gather_to_first(const std::string& mine, comm::Communicator& world) {
  const std::vector<std::int64_t> sizes = sizes_of_all(mine, world);
  std::vector<std::string> all(world.rank() == 0 ? sizes.size() : 1);
  std::vector<comm::Piece> sends, receives;
  all[0] = mine;
  if (world.rank() > 0) sends.push_back({0, std::as_writable_bytes(std::span(all[0]))});
  for (std::size_t r = 1; r < all.size(); ++r) {
    all[r].resize(static_cast<std::size_t>(sizes[r]));
    receives.push_back({static_cast<int>(r), std::as_writable_bytes(std::span(all[r]))});
  }
  world.exchange(sends, receives)->wait();
  if (world.rank() > 0) all.clear();
  return all;
}

std::optional<Error> failure_of(const std::function<void()>& work) {
  try {
    work();
    return std::nullopt;
  } catch (const EngineError& error) {
    return error.error();
  } catch (const std::filesystem::filesystem_error& error) {
    return Error{ExitCode::kUnusable, error.what(), "", {}};
  } catch (const std::exception& error) {
    return Error{ExitCode::kBug, error.what(), "", {}};
  }
}

void agree_on(const std::optional<Error>& failure, comm::Communicator& world) {
  std::vector<Error> errors;
  for (const std::string& text : gather_bytes(pack(failure), world))
    if (!text.empty() && std::find(errors.begin(), errors.end(), unpack(text)) == errors.end())
      errors.push_back(unpack(text));
  if (errors.empty()) return;
  Error joined = errors[0];
  for (std::size_t i = 1; i < errors.size(); ++i) joined.message.append("\n" + errors[i].message);
  throw EngineError(std::move(joined));
}

void together(comm::Communicator& world, const std::function<void()>& work) {
  agree_on(failure_of(work), world);
}

}  // namespace ptrain::checkpoint
