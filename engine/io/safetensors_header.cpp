#include "engine/io/safetensors_header.h"

#include <algorithm>
#include <set>

#include "engine/io/json_reader.h"
#include "engine/io/named_array.h"
#include "engine/io/text.h"
#include "kernels/base/error.h"
#include "kernels/base/shape.h"

namespace convoy {

namespace {

constexpr const char* kMetadata = "__metadata__";

/// Reads the header's JSON; sizes and ranges are checked afterwards.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& path) : json_(text, path), path_(path) {}

  SafetensorsHeader parse() {
    members([&](std::string key) {
      if (key == kMetadata) {
        if (std::exchange(metadata_seen_, true)) json_.fail("double key __metadata__");
        parse_metadata();
      } else {
        parse_entry(std::move(key));
      }
    });
    json_.expect_end();
    return std::move(header_);
  }

 private:
  /// Calls `member(key)` for each member of an object; it must read the value.
  template <class Member>
  void members(Member member) {
    json_.expect('{');
    if (json_.accept('}')) return;
    do {
      std::string key = json_.string();
      json_.expect(':');
      member(std::move(key));
    } while (json_.accept(','));
    json_.expect('}');
  }

  std::vector<std::int64_t> numbers(std::size_t limit) {
    std::vector<std::int64_t> result;
    json_.expect('[');
    if (json_.accept(']')) return result;
    do {
      if (result.size() == limit) json_.fail(fmt::format("more than {} numbers in a list", limit));
      result.push_back(json_.number());
    } while (json_.accept(','));
    json_.expect(']');
    return result;
  }

  /// Counts an entry of `bytes` bytes of text against the limits.
  void count_entry(std::size_t bytes) {
    text_bytes_ += bytes;
    if (++entries_ > SafetensorsLimits::kEntries) {
      json_.fail(fmt::format("more than {} entries", SafetensorsLimits::kEntries));
    }
    if (text_bytes_ > SafetensorsLimits::kTextBytes) {
      json_.fail(
          fmt::format("more than {} bytes of names and metadata", SafetensorsLimits::kTextBytes));
    }
  }

  void parse_metadata() {
    members([&](std::string key) {
      std::string value = json_.string();
      count_entry(key.size() + value.size());
      if (header_.metadata.contains(key)) {
        json_.fail(fmt::format("double key '{}' in __metadata__", excerpt(key)));
      }
      header_.metadata.emplace(std::move(key), std::move(value));
    });
  }

  void parse_entry(std::string name) {
    count_entry(name.size());
    SafetensorsEntry entry;
    entry.name = std::move(name);
    std::set<std::string> seen;
    members([&](const std::string& key) {
      if (!seen.insert(key).second) fail(entry, fmt::format("double key '{}'", excerpt(key)));
      parse_field(entry, key);
    });
    if (seen.size() != 3) fail(entry, "expected dtype, shape and data_offsets");
    header_.entries.push_back(std::move(entry));
  }

  void parse_field(SafetensorsEntry& entry, const std::string& key) {
    if (key == "dtype") {
      const std::string type = json_.string();
      entry.type = find_file_type(type);
      if (!entry.type) fail(entry, fmt::format("unknown dtype '{}'", excerpt(type)));
    } else if (key == "shape") {
      entry.shape = numbers(SafetensorsLimits::kRank);
    } else if (key == "data_offsets") {
      const std::vector<std::int64_t> range = numbers(2);
      if (range.size() != 2) fail(entry, "data_offsets needs two numbers");
      entry.begin = static_cast<std::uint64_t>(range[0]);
      entry.end = static_cast<std::uint64_t>(range[1]);
    } else {
      fail(entry, fmt::format("unknown key '{}'", excerpt(key)));
    }
  }

  [[noreturn]] void fail(const SafetensorsEntry& entry, const std::string& what) {
    CONVOY_FAIL(checkpoint, "{}: tensor {}: {}", printable(path_), excerpt(entry.name), what);
  }

  JsonReader json_;
  const std::string& path_;
  SafetensorsHeader header_;
  std::size_t entries_ = 0;
  std::size_t text_bytes_ = 0;
  bool metadata_seen_ = false;
};

/// Checks the header as a whole against the payload.
class HeaderChecker {
 public:
  HeaderChecker(const std::string& path, std::uint64_t payload) : path_(path), payload_(payload) {}

  void check(SafetensorsHeader& header) const {
    for (const SafetensorsEntry& entry : header.entries) check_size(entry);
    check_names(header.entries);
    check_cover(header.entries);
  }

 private:
  void check_size(const SafetensorsEntry& entry) const {
    if (entry.begin > entry.end) {
      fail(entry, fmt::format("begins at {} and ends before, at {}", entry.begin, entry.end));
    }
    if (entry.end > payload_) {
      fail(entry, fmt::format("ends at {}, the file holds {} bytes of tensors; it was cut short or "
                              "the header is damaged",
                              entry.end, payload_));
    }
    std::int64_t bits = entry.type->bits;
    for (std::int64_t extent : entry.shape) {
      if (__builtin_mul_overflow(bits, extent, &bits)) {
        fail(entry, "shape overflow: " + shape_text(entry.shape));
      }
    }
    const std::uint64_t size = entry.end - entry.begin;
    if (bits % 8 != 0 || static_cast<std::uint64_t>(bits / 8) != size) {
      fail(entry, fmt::format("wrong size: {} bytes, shape {} of {} needs {} bits", size,
                              shape_text(entry.shape), entry.type->name, bits));
    }
  }

  void check_names(const std::vector<SafetensorsEntry>& entries) const {
    std::set<std::string_view> names;
    for (const SafetensorsEntry& entry : entries) {
      if (!names.insert(entry.name).second) fail(entry, "double key: the name stands twice");
    }
  }

  /// Sorts `entries` by their place and wants each to begin where the one before ended.
  void check_cover(std::vector<SafetensorsEntry>& entries) const {
    std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
      return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    std::uint64_t end = 0;
    for (const SafetensorsEntry& entry : entries) {
      if (entry.begin != end) {
        fail(entry, fmt::format("{}: begins at {}, the tensor before ends at {}",
                                entry.begin < end ? "overlap" : "hole", entry.begin, end));
      }
      end = entry.end;
    }
    if (end != payload_) {
      CONVOY_FAIL(checkpoint, "{}: hole: the tensors end at {}, {} bytes follow{}",
                  printable(path_), end, payload_ - end,
                  entries.empty() ? "" : " tensor " + excerpt(entries.back().name));
    }
  }

  [[noreturn]] void fail(const SafetensorsEntry& entry, const std::string& what) const {
    CONVOY_FAIL(checkpoint, "{}: tensor {}: {}", printable(path_), excerpt(entry.name), what);
  }

  const std::string& path_;
  std::uint64_t payload_;
};

std::string entry_json(const SafetensorsEntry& entry) {
  std::string shape;
  for (std::int64_t extent : entry.shape) {
    shape += fmt::format("{}{}", shape.empty() ? "" : ",", extent);
  }
  return fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                     json_string(entry.name), entry.type->name, shape, entry.begin, entry.end);
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view text, std::uint64_t payload,
                                           const std::string& path) {
  if (text.empty() || text.front() != '{') {
    CONVOY_FAIL(checkpoint, "{}: the header does not start with '{{'; a wrong or damaged file",
                printable(path));
  }
  SafetensorsHeader header = HeaderParser(text, path).parse();
  HeaderChecker(path, payload).check(header);
  return header;
}

std::string safetensors_header_bytes(const SafetensorsHeader& header) {
  std::string text = "{";
  if (!header.metadata.empty()) {
    text += fmt::format("\"{}\":{{", kMetadata);
    for (const auto& [key, value] : header.metadata) {
      text += fmt::format("{}:{},", json_string(key), json_string(value));
    }
    text.back() = '}';
  }
  for (const SafetensorsEntry& entry : header.entries) {
    if (text.size() > 1) text += ',';
    text += entry_json(entry);
  }
  text += '}';
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string bytes(8, '\0');
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(text.size() >> 8 * i & 0xFF);
  return bytes + text;
}

}  // namespace convoy
