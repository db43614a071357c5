#include "engine/data/gunzip.h"

#include <zlib.h>

#include <algorithm>
#include <utility>

#include "engine/io/text.h"
#include "kernels/base/error.h"

namespace convoy {

namespace {
constexpr std::size_t kPiece = std::size_t{1} << 20;
constexpr int kGzipWindow = 15 + 16;  // zlib's way to say: gzip, not zlib
}  // namespace

bool is_gzip(const Bytes& bytes) {
  return bytes.size() >= 2 && bytes[0] == 0x1F && bytes[1] == 0x8B;
}

/// One or more gzip members after each other.
class ContentReader::Inflater {
 public:
  Inflater(const Bytes& bytes, std::string name) : bytes_(bytes), name_(std::move(name)) {
    if (inflateInit2(&stream_, kGzipWindow) != Z_OK) {
      CONVOY_FAIL(resource, "{}: no memory to decompress", printable(name_));
    }
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  /// Fills up to `count` bytes; what was there.
  std::size_t read(std::uint8_t* out, std::size_t count) {
    stream_.next_out = out;
    stream_.avail_out = static_cast<uInt>(count);
    while (stream_.avail_out > 0 && !done_) step();
    return count - stream_.avail_out;
  }

 private:
  void step() {
    feed();
    int code = inflate(&stream_, Z_NO_FLUSH);
    if (code == Z_STREAM_END) return next_member();
    if (code == Z_OK) return;
    const char* why = stream_.msg != nullptr ? stream_.msg : "the file is cut short";
    CONVOY_FAIL(data, "{}: damaged gzip data: {}", printable(name_), why);
  }

  void feed() {
    if (stream_.avail_in > 0) return;
    std::size_t piece = std::min(bytes_.size() - at_, kPiece);
    stream_.next_in = const_cast<Bytef*>(bytes_.data() + at_);  // zlib only reads there
    stream_.avail_in = static_cast<uInt>(piece);
    at_ += piece;
  }

  void next_member() {
    feed();
    done_ = stream_.avail_in == 0;
    if (!done_) inflateReset(&stream_);
  }

  const Bytes& bytes_;
  std::string name_;
  z_stream stream_{};
  std::size_t at_ = 0;
  bool done_ = false;
};

ContentReader::ContentReader(const Bytes& bytes, std::string name)
    : bytes_(bytes), name_(std::move(name)) {
  if (is_gzip(bytes)) inflater_ = std::make_unique<Inflater>(bytes, name_);
}

ContentReader::~ContentReader() = default;

Bytes ContentReader::read(std::int64_t count) {
  auto wanted = static_cast<std::size_t>(count);
  Bytes out;
  if (!inflater_) {
    std::size_t there = std::min(wanted, bytes_.size() - at_);
    out.assign(bytes_.data() + at_, bytes_.data() + at_ + there);
    at_ += there;
    return out;
  }
  while (out.size() < wanted) {
    std::size_t before = out.size();
    std::size_t piece = std::min(wanted - before, kPiece);
    out.resize(before + piece);
    std::size_t got = inflater_->read(out.data() + before, piece);
    out.resize(before + got);
    if (got < piece) break;
  }
  return out;
}

bool ContentReader::at_end() {
  return read(1).empty();
}

}  // namespace convoy
