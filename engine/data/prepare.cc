#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/base/hash.h"
#include "core/data/lengths.h"
#include "core/data/tokenizer_identity.h"
#include "engine/base/engine_error.h"
#include "engine/base/fault.h"
#include "engine/data/build.h"
#include "engine/data/cache.h"
#include "engine/data/contents.h"
#include "engine/data/file.h"
#include "engine/data/index.h"
#include "engine/data/sources.h"
#include "engine/data/tokenizer.h"

namespace ptrain::data {
namespace {

constexpr fault::FilePoints kLengthsPoints{"start.data.lengths.create", "start.data.lengths.write",
                                           "start.data.lengths.sync", "start.data.lengths.rename"};

// The recipe's data with all that decides on its tokens.
struct Wanted {
  recipe::Data data;
  std::unique_ptr<Tokenizer> tokenizer;  // none: all files hold tokens
};

Wanted wanted_by(const recipe::Data& data, const std::string& folder) {
  if (!(data.validation_fraction >= 0.0 && data.validation_fraction < 1.0))
    throw EngineError(ExitCode::kUsage, "data.validation_fraction is not in [0, 1)",
                      "give e.g. 0.01");
  recipe::Data whole = with_tokenizer_hash(data, folder);
  auto tokenizer = open_tokenizer(whole, folder);
  return {std::move(whole), std::move(tokenizer)};
}

// Only files of Format::kBin need an end.
void check_end_token(const recipe::Data& data, const Sources& sources) {
  const auto is_bin = [](const SourceFile& file) { return file.format == recipe::Format::kBin; };
  const bool is_read =
      std::ranges::any_of(sources.train, is_bin) || std::ranges::any_of(sources.validation, is_bin);
  if (data.end_token >= 0 && !is_read)
    throw EngineError(ExitCode::kUsage, "data.end_token is given, but no file of data is a `bin`",
                      "leave it out, or give format: bin to the files that hold bare tokens");
}

// Without a tokenizer there are tokens only.
void check_files(const recipe::Data& data, const Sources& sources) {
  check_end_token(data, sources);
  if (data.tokenizer != "none") return;
  for (const auto* files : {&sources.train, &sources.validation})
    for (const SourceFile& file : *files)
      if (file.format != recipe::Format::kBin && file.format != recipe::Format::kMegatron)
        throw EngineError(ExitCode::kUsage,
                          fmt::format("data.tokenizer is none, but {} is text", file.path),
                          "give a tokenizer, or files of tokens");
}

// What a set of files is known by without reading them.
std::string request_key(const recipe::Data& data, const Sources& sources) {
  std::string text = fmt::format("{} {} {} {}\n", tokenizer_identity(data),
                                 data.validation_fraction, data.end_token, data.max_documents);
  const auto list = [&](const std::vector<SourceFile>& files) {
    text += fmt::format("{} files\n", files.size());
    for (const SourceFile& file : files)
      text += fmt::format("{} {} {} {} {}{}\n", file.size, file.modified_ns,
                          static_cast<int>(file.format), file.source, file.path,
                          file.silent.empty() ? "" : " silent");
  };
  list(sources.train);
  list(sources.validation);
  return hash128_hex(text);
}

ContentHashes build_all(const Wanted& wanted, const Sources& sources, const Cache& cache) {
  const auto files = read_contents(wanted.data, sources);
  const ContentHashes hashes = content_hashes(wanted.data, files);
  const auto build = [&](Side side, const std::string& hash) {
    if (hash.empty() || cache.has_index(hash)) return;
    build_index(wanted.data, wanted.tokenizer.get(), files, side, {cache.index_path(hash), hash});
  };
  build(Side::kTrain, hashes.train);
  build(Side::kValidation, hashes.validation);
  return hashes;
}

bool complete(const Cache& cache, const ContentHashes& hashes) {
  return cache.has_index(hashes.train) &&
         (hashes.validation.empty() || cache.has_index(hashes.validation));
}

void count_side(const std::string& path, std::int64_t& documents, std::int64_t& tokens) {
  const auto index = open_index(path);
  documents = index->num_documents();
  for (std::int64_t i = 0; i < documents; ++i) tokens += index->document(i).size();
}

IndexFiles describe(const Cache& cache, const ContentHashes& hashes) {
  fault::point("start.data.describe");
  IndexFiles files;
  files.train_hash = hashes.train;
  files.validation_hash = hashes.validation;
  files.train = cache.index_path(hashes.train);
  count_side(files.train, files.train_documents, files.train_tokens);
  if (hashes.validation.empty()) return files;
  files.validation = cache.index_path(hashes.validation);
  count_side(files.validation, files.validation_documents, files.validation_tokens);
  return files;
}

ContentHashes known_or_built(const Wanted& wanted, const Sources& sources, const Cache& cache) {
  const std::string key = request_key(wanted.data, sources);
  if (const auto known = cache.known(key); known && complete(cache, *known)) return *known;
  fault::point("start.data.lock");
  const FolderLock lock(cache.folder());
  fault::point("start.data.locked");
  if (const auto known = cache.known(key); known && complete(cache, *known)) return *known;
  if (lock.held()) cache.remove_unfinished();
  fault::point("start.data.hash");
  const ContentHashes hashes = build_all(wanted, sources, cache);
  cache.remember(key, hashes);
  return hashes;
}

DocumentLengths count_lengths(const Index& index) {
  DocumentLengths out{index.content_hash(), {}};
  const auto bounds = index.sources();
  for (std::size_t source = 0; source + 1 < bounds.size(); ++source) {
    LengthCounter counter;
    for (std::int64_t i = bounds[source]; i < bounds[source + 1]; ++i)
      counter.add(index.document(i).size() - 1);
    out.sources.push_back(counter.counts());
  }
  return out;
}

bool holds_lengths_of(const std::string& path, const std::string& content_hash) {
  if (!std::filesystem::is_regular_file(path)) return false;
  const auto bytes = read_beginning(path, static_cast<std::int64_t>(kMostLengthsBytes) + 1);
  const auto kept = lengths_from_text({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  return kept && kept->content_hash == content_hash;
}

// Leaves the lengths of the training documents for the planner.
void keep_lengths(const recipe::Data& data, const std::string& folder, const Cache& cache,
                  const IndexFiles& files) {
  const std::string path = cache.folder() + "/" + lengths_name(data, folder);
  try {
    if (holds_lengths_of(path, files.train_hash)) return;
    const FolderLock lock(cache.folder());
    NewFile file(path, kLengthsPoints);
    const std::string text = to_text(count_lengths(*open_index(files.train)));
    file.write(std::as_bytes(std::span(text)));
    file.publish();
  } catch (const EngineError&) {
    // A cache that cannot be written, but holds the index: the run is as good as ever, and the next
    // plan says that it had no lengths.
  }
}

// Whether the files on disk are, by size and time, those that gave these hashes.
bool gives(const recipe::Data& data, const std::string& folder, const Cache& cache,
           const ContentHashes& hashes) {
  try {
    return cache.known(request_key(data, find_sources(data, folder))) == hashes;
  } catch (const EngineError&) {
    return false;  // no longer there
  }
}

}  // namespace

IndexFiles prepare_index(const recipe::Data& data, const std::string& folder) {
  const Wanted wanted = wanted_by(data, folder);
  fault::point("start.data.sources");
  const Sources sources = find_sources(wanted.data, folder);
  check_files(wanted.data, sources);
  fault::point("start.data.cache");
  const Cache cache(cache_folder(wanted.data, folder));
  IndexFiles files = describe(cache, known_or_built(wanted, sources, cache));
  files.skipped_files = sources.skipped;
  keep_lengths(wanted.data, folder, cache, files);
  return files;
}

IndexFiles reopen_index(const recipe::Data& data, const std::string& folder,
                        const std::string& train_hash, const std::string& validation_hash) {
  const Wanted wanted = wanted_by(data, folder);
  fault::point("start.data.reopen");
  const Cache cache(cache_folder(wanted.data, folder));
  const ContentHashes recorded{train_hash, validation_hash};
  if (complete(cache, recorded)) {
    IndexFiles files = describe(cache, recorded);
    files.sources_changed = !gives(wanted.data, folder, cache, recorded);
    return files;
  }
  const ContentHashes found = known_or_built(wanted, find_sources(wanted.data, folder), cache);
  if (found == recorded) return describe(cache, recorded);
  throw EngineError(ExitCode::kUnusable,
                    fmt::format("the token index of the checkpoint ({}) is gone from {}, and the "
                                "data files have changed since",
                                train_hash, cache.folder()),
                    "restore the data files, or start a new run from the checkpoint's weights");
}

}  // namespace ptrain::data
