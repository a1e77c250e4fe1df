#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "core/base/hash.h"
#include "engine/base/engine_error.h"
#include "engine/base/fault.h"
#include "engine/data/cache.h"
#include "engine/data/file.h"
#include "engine/data/index.h"
#include "core/data/index_format.h"
#include "engine/data/sources.h"

namespace ptrain::data {
namespace {

constexpr fault::FilePoints kBinPoints{"start.data.bin.create", "start.data.bin.write",
                                       "start.data.bin.sync", "start.data.bin.rename"};
constexpr fault::FilePoints kIdxPoints{"start.data.idx.create", "start.data.idx.write",
                                       "start.data.idx.sync", "start.data.idx.rename"};

struct Document {
  SourceFile file;
  std::uint64_t hash = 0;   // of its bytes
};

struct Split {
  std::vector<Document> train;
  std::vector<Document> validation;
};

void check_supported(const recipe::Data& data) {
  if (data.tokenizer != "byte")
    throw EngineError(ExitCode::kUsage,
                      fmt::format("data.tokenizer: '{}' is not known", data.tokenizer),
                      "the tokenizer there is: byte");
  if (!(data.validation_fraction >= 0.0 && data.validation_fraction < 1.0))
    throw EngineError(ExitCode::kUsage, "data.validation_fraction is not in [0, 1)",
                      "give e.g. 0.01");
}

// What a set of files is known by without reading them.
std::string request_key(const recipe::Data& data, const Sources& sources) {
  std::string text = fmt::format("{} {}\n", data.tokenizer, data.validation_fraction);
  const auto list = [&](const std::vector<SourceFile>& files) {
    text += fmt::format("{} files\n", files.size());
    for (const SourceFile& file : files)
      text += fmt::format("{} {} {}\n", file.size, file.modified_ns, file.path);
  };
  list(sources.train);
  list(sources.validation);
  return hash128_hex(text);
}

std::vector<Document> hash_documents(const std::vector<SourceFile>& files) {
  std::vector<Document> documents;
  for (const SourceFile& file : files) {
    Hasher64 hasher;
    std::int64_t size = 0;
    read_in_pieces(file.path, [&](auto piece) {
      hasher.update(piece);
      size += std::ssize(piece);
    });
    if (size != file.size)
      throw EngineError(ExitCode::kUnusable,
                        "the data file " + file.path + " changes while it is read",
                        "start again when nobody writes it");
    documents.push_back({file, hasher.digest()});
  }
  return documents;
}

// By content, so equal files stay on one side, and a file added or renamed moves no other.
void split_off_fraction(double fraction, Split& split) {
  const auto chosen = [&](const Document& document) {
    return static_cast<double>(document.hash) * 0x1p-64 < fraction;
  };
  const auto rest = std::ranges::stable_partition(split.train, std::not_fn(chosen));
  split.validation.assign(rest.begin(), rest.end());
  split.train.erase(rest.begin(), rest.end());
  if (!split.validation.empty() && !split.train.empty()) return;
  throw EngineError(
      ExitCode::kUnusable,
      fmt::format("data.validation_fraction {} leaves {} documents to train on and {} to validate",
                  fraction, split.train.size(), split.validation.size()),
      "give more files, another fraction, or name the files under data.validation");
}

Split split_documents(const recipe::Data& data, const Sources& sources) {
  Split split{hash_documents(sources.train), hash_documents(sources.validation)};
  if (data.validation.empty() && data.validation_fraction > 0)
    split_off_fraction(data.validation_fraction, split);
  return split;
}

std::string content_hash(const std::vector<Document>& documents) {
  if (documents.empty()) return "";
  std::string text = "ptrain index 1, byte tokenizer\n";
  for (const Document& document : documents)
    text += fmt::format("{:016x} {}\n", document.hash, document.file.size);
  return hash128_hex(text);
}

// Appends the tokens of documents to a .bin file and keeps the table for its .idx.
class TokenWriter {
 public:
  explicit TokenWriter(const std::string& path) : file_(path, kBinPoints) { table_.begin = {0}; }

  void add(const Document& document) {
    fault::point("start.data.document");
    Hasher64 hasher;
    read_in_pieces(document.file.path, [&](auto piece) {
      hasher.update(piece);
      tokens_.resize(piece.size());
      std::ranges::transform(piece, tokens_.begin(),
                             [](std::byte byte) { return static_cast<std::uint16_t>(byte); });
      flush();
    });
    if (hasher.digest() != document.hash)
      throw EngineError(ExitCode::kUnusable,
                        "the data file " + document.file.path + " changes while it is read",
                        "start again when nobody writes it");
    tokens_ = {static_cast<std::uint16_t>(kByteEos)};
    flush();
    table_.begin.push_back(num_tokens_);
  }

  IndexTable publish(const std::string& hash) {
    file_.publish();
    table_.bin_hash = bin_hasher_.digest();
    table_.content_hash = hash;
    return std::move(table_);
  }

 private:
  void flush() {
    const auto bytes = std::as_bytes(std::span(tokens_));
    bin_hasher_.update(bytes);
    file_.write(bytes);
    num_tokens_ += std::ssize(tokens_);
  }

  NewFile file_;
  IndexTable table_;
  Hasher64 bin_hasher_;
  std::vector<std::uint16_t> tokens_;
  std::int64_t num_tokens_ = 0;
};

// The .idx comes last: without it there is no index.
void build(const Cache& cache, const std::vector<Document>& documents, const std::string& hash) {
  if (hash.empty() || cache.has_index(hash)) return;
  const std::string path = cache.index_path(hash);
  TokenWriter writer(path + ".bin");
  for (const Document& document : documents) writer.add(document);
  const std::vector<std::byte> table = index_to_bytes(writer.publish(hash));
  NewFile file(path + ".idx", kIdxPoints);
  file.write(table);
  file.publish();
}

ContentHashes build_all(const recipe::Data& data, const Sources& sources, const Cache& cache) {
  const Split split = split_documents(data, sources);
  const ContentHashes hashes{content_hash(split.train), content_hash(split.validation)};
  build(cache, split.train, hashes.train);
  build(cache, split.validation, hashes.validation);
  return hashes;
}

bool complete(const Cache& cache, const ContentHashes& hashes) {
  return cache.has_index(hashes.train) &&
         (hashes.validation.empty() || cache.has_index(hashes.validation));
}

void count_side(const std::string& path, std::int64_t& documents, std::int64_t& tokens) {
  const auto index = open_index(path);
  documents = index->num_documents();
  for (std::int64_t i = 0; i < documents; ++i) tokens += std::ssize(index->document(i));
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

ContentHashes known_or_built(const recipe::Data& data, const Sources& sources, const Cache& cache) {
  const std::string key = request_key(data, sources);
  if (const auto known = cache.known(key); known && complete(cache, *known)) return *known;
  fault::point("start.data.lock");
  const FolderLock lock(cache.folder());
  fault::point("start.data.locked");
  if (const auto known = cache.known(key); known && complete(cache, *known)) return *known;
  if (lock.held()) cache.remove_unfinished();
  fault::point("start.data.hash");
  const ContentHashes hashes = build_all(data, sources, cache);
  cache.remember(key, hashes);
  return hashes;
}

// Whether the files on disk are, by size and time, those that gave these hashes.
bool gives(const recipe::Data& data, const std::string& folder, const Cache& cache,
           const ContentHashes& hashes) {
  try {
    return cache.known(request_key(data, find_sources(data, folder))) == hashes;
  } catch (const EngineError&) {
    return false;   // no longer there
  }
}

}  // namespace

IndexFiles prepare_index(const recipe::Data& data, const std::string& folder) {
  check_supported(data);
  fault::point("start.data.sources");
  const Sources sources = find_sources(data, folder);
  fault::point("start.data.cache");
  const Cache cache(cache_folder(data.cache, folder));
  IndexFiles files = describe(cache, known_or_built(data, sources, cache));
  files.skipped_files = sources.skipped;
  return files;
}

IndexFiles reopen_index(const recipe::Data& data, const std::string& folder,
                        const std::string& train_hash, const std::string& validation_hash) {
  check_supported(data);
  fault::point("start.data.reopen");
  const Cache cache(cache_folder(data.cache, folder));
  const ContentHashes recorded{train_hash, validation_hash};
  if (complete(cache, recorded)) {
    IndexFiles files = describe(cache, recorded);
    files.sources_changed = !gives(data, folder, cache, recorded);
    return files;
  }
  const ContentHashes found = known_or_built(data, find_sources(data, folder), cache);
  if (found == recorded) return describe(cache, recorded);
  throw EngineError(ExitCode::kUnusable,
                    fmt::format("the token index of the checkpoint ({}) is gone from {}, and the "
                                "data files have changed since",
                                train_hash, cache.folder()),
                    "restore the data files, or start a new run from the checkpoint's weights");
}

}  // namespace ptrain::data
