#include "engine/data/documents.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/data/megatron_index.h"
#include "engine/base/engine_error.h"
#include "engine/data/file.h"

namespace ptrain::data {
namespace {

using Bytes = std::span<const std::byte>;

[[noreturn]] void refuse(const SourceFile& file, const std::string& reason,
                         const std::string& hint) {
  throw EngineError(ExitCode::kUnusable, fmt::format("{}: {}", file.path, reason), hint);
}

// The header of llm.c's files of tokens: 256 numbers of 32 bits, the first three of which count.
struct TokenFileHeader {
  std::uint32_t magic = 0, version = 0, tokens = 0;
};
constexpr std::int64_t kHeaderBytes = 1024;
constexpr std::uint32_t kGpt2Magic = 20240520, kLlama3Magic = 20240801;

struct TokenFile {
  std::int64_t begin = 0;  // of the first token, in bytes
  std::int64_t width = 2;
};

// A file without llm.c's header is a headerless one of uint16, as nanoGPT writes.
TokenFile describe(const SourceFile& file) {
  TokenFileHeader header;
  const auto bytes = read_beginning(file.path, kHeaderBytes);
  if (std::ssize(bytes) >= kHeaderBytes) std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != kGpt2Magic && header.magic != kLlama3Magic) {
    if (file.size % 2 != 0)
      refuse(file, "its size is odd, so it holds no uint16 tokens",
             "copy it again if it is cut short, or name its format");
    return {0, 2};
  }
  const bool wide = header.magic == kLlama3Magic;
  if (header.version != (wide ? 7u : 1u))
    refuse(file, fmt::format("its header has version {}", header.version),
           "write it again with the current script of llm.c");
  const TokenFile result{kHeaderBytes, wide ? 4 : 2};
  if (file.size != kHeaderBytes + std::int64_t{header.tokens} * result.width)
    refuse(file,
           fmt::format("it has {} bytes, but its header promises {} tokens of {} bytes", file.size,
                       header.tokens, result.width),
           "copy it again; it may be cut short");
  return result;
}

// Hands the bytes of a file on from `skip`, in pieces of whole tokens.
template <class Take>
void read_tokens(const SourceFile& file, std::int64_t skip, std::int64_t width, const Take& take) {
  std::vector<std::byte> rest;  // the start of a token that the next piece ends
  read_in_pieces(file.path, [&](Bytes piece) {
    const auto skipped = std::min<std::int64_t>(skip, std::ssize(piece));
    skip -= skipped;
    piece = piece.subspan(static_cast<std::size_t>(skipped));
    rest.insert(rest.end(), piece.begin(), piece.end());
    const auto whole =
        rest.size() / static_cast<std::size_t>(width) * static_cast<std::size_t>(width);
    take(Bytes(rest).first(whole));
    rest.erase(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(whole));
  });
  if (!rest.empty()) refuse(file, "it ends inside a token", "copy it again; it may be cut short");
}

void read_text(const SourceFile& file, DocumentSink& sink) {
  read_in_pieces(file.path, [&](Bytes piece) { sink.piece(piece); });
  sink.end(1);
}

void read_lines(const SourceFile& file, DocumentSink& sink) {
  std::vector<std::byte> line;
  std::int64_t number = 0;
  const auto end_line = [&] {
    ++number;
    if (!is_blank(line)) {
      sink.piece(line);
      sink.end(number);
    }
    line.clear();
  };
  read_in_pieces(file.path, [&](Bytes piece) {
    while (true) {
      const auto stop = std::ranges::find(piece, std::byte{'\n'});
      line.insert(line.end(), piece.begin(), stop);
      if (stop == piece.end()) return;
      end_line();
      piece = piece.subspan(static_cast<std::size_t>(stop - piece.begin()) + 1);
    }
  });
  if (!line.empty()) end_line();
}

std::uint32_t token_at(Bytes bytes, std::size_t at, std::size_t width) {
  std::uint32_t token = 0;
  std::memcpy(&token, bytes.data() + at, width);
  return token;
}

void read_bin(const SourceFile& file, std::int64_t end_token, DocumentSink& sink) {
  if (end_token < 0)
    throw EngineError(
        ExitCode::kUsage, fmt::format("{}: where a document ends is not known", file.path),
        "give data.end_token, e.g. 50256 for tokens of GPT-2; a number that no token has "
        "where nothing ends documents");
  const TokenFile tokens = describe(file);
  const auto width = static_cast<std::size_t>(tokens.width);
  std::int64_t number = 1;
  bool open = false;
  read_tokens(file, tokens.begin, tokens.width, [&](Bytes piece) {
    std::size_t begin = 0;
    for (std::size_t at = 0; at < piece.size(); at += width) {
      if (token_at(piece, at, width) != end_token) continue;
      sink.piece(piece.subspan(begin, at + width - begin));
      sink.end(number++);
      begin = at + width;
    }
    open = begin < piece.size() || (open && begin == 0);
    if (begin < piece.size()) sink.piece(piece.subspan(begin));
  });
  if (open) sink.end(number);
}

MegatronIndex read_table(const SourceFile& file) {
  auto table = megatron_index_from_bytes(read_whole(file.table));
  if (!table)
    throw EngineError(ExitCode::kUnusable, fmt::format("{}: {}", file.table, table.error().message),
                      "it belongs beside a .bin of Megatron; write both again");
  if (file.size != table->num_tokens() * table->token_bytes)
    refuse(file,
           fmt::format("it has {} bytes, but its .idx promises {} tokens of {} bytes", file.size,
                       table->num_tokens(), table->token_bytes),
           "copy both files again; one may be cut short");
  return std::move(*table);
}

std::vector<TokenRange> read_silent(const SourceFile& file, std::int64_t num_tokens) {
  if (file.silent.empty()) return {};
  const auto bytes = read_whole(file.silent);
  std::vector<TokenRange> ranges(bytes.size() / sizeof(TokenRange));
  if (!ranges.empty()) std::memcpy(ranges.data(), bytes.data(), ranges.size() * sizeof(TokenRange));
  std::int64_t end = 0;
  bool good = bytes.size() % sizeof(TokenRange) == 0;
  for (const TokenRange& range : ranges) {
    good = good && range.begin >= end && range.end > range.begin && range.end <= num_tokens;
    end = range.end;
  }
  if (!good)
    throw EngineError(ExitCode::kUnusable,
                      file.silent + ": it holds no ascending ranges of the tokens of its .bin",
                      "write it again together with its .bin, or remove it: then all are learned");
  return ranges;
}

// The parts of ranges that lie in tokens [begin, end), counted from begin.
std::vector<TokenRange> within(const std::vector<TokenRange>& ranges, std::int64_t begin,
                               std::int64_t end) {
  std::vector<TokenRange> result;
  for (auto range = std::ranges::upper_bound(ranges, begin, {}, &TokenRange::end);
       range != ranges.end() && range->begin < end; ++range)
    result.push_back({std::max(range->begin, begin) - begin, std::min(range->end, end) - begin});
  return result;
}

void read_megatron(const SourceFile& file, DocumentSink& sink) {
  const MegatronIndex table = read_table(file);
  const auto silent = read_silent(file, table.num_tokens());
  std::size_t document = 0;
  std::int64_t at = 0;
  const auto end_documents = [&] {
    while (document + 1 < table.begin.size() && table.begin[document + 1] == at) {
      sink.silent(within(silent, table.begin[document], at));
      sink.end(static_cast<std::int64_t>(++document));
    }
  };
  read_tokens(file, 0, table.token_bytes, [&](Bytes piece) {
    while (!piece.empty()) {
      const std::int64_t left = table.begin[document + 1] - at;
      const auto take = std::min(left, std::ssize(piece) / table.token_bytes);
      const auto bytes = static_cast<std::size_t>(take * table.token_bytes);
      sink.piece(piece.first(bytes));
      piece = piece.subspan(bytes);
      at += take;
      end_documents();
    }
  });
}

}  // namespace

void read_documents(const SourceFile& file, std::int64_t end_token, DocumentSink& sink) {
  switch (file.format) {
    case recipe::Format::kJsonl:
      return read_lines(file, sink);
    case recipe::Format::kBin:
      return read_bin(file, end_token, sink);
    case recipe::Format::kMegatron:
      return read_megatron(file, sink);
    case recipe::Format::kAuto:
    case recipe::Format::kText:
      break;
  }
  read_text(file, sink);
}

std::int64_t token_bytes(const SourceFile& file) {
  if (file.format == recipe::Format::kBin) return describe(file).width;
  if (file.format == recipe::Format::kMegatron) return read_table(file).token_bytes;
  return 1;
}

}  // namespace ptrain::data
