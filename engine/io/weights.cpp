#include "engine/io/weights.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "engine/io/text.h"
#include "kernels/base/error.h"
#include "kernels/base/shape.h"

namespace convoy {

namespace {

constexpr std::size_t kNamed = 5;

bool is_counter(std::string_view name) {
  return name == "num_batches_tracked" || name.ends_with(".num_batches_tracked");
}

/// Strips `prefix` as long as all names of the file and none wanted start with it.
void strip(std::string_view prefix, const std::vector<WantedEntry>& wanted, SafetensorsFile& file,
           std::vector<std::string>& notes) {
  const auto starts = [&](const auto& entry) { return entry.name.starts_with(prefix); };
  if (std::any_of(wanted.begin(), wanted.end(), starts)) return;
  while (!file.tensors.empty() && std::all_of(file.tensors.begin(), file.tensors.end(), starts)) {
    for (NamedArray& tensor : file.tensors) tensor.name.erase(0, prefix.size());
    notes.push_back(fmt::format("{}: stripped '{}' from all {} names", printable(file.path), prefix,
                                file.tensors.size()));
  }
}

/// Complaints of one sort: all are counted, the first few named.
class Complaints {
 public:
  explicit Complaints(const char* sort) : sort_(sort) {}

  void add(std::string what) {
    if (++count_ <= kNamed) shown_.push_back(std::move(what));
  }
  /// "; 3 missing: a, b, c".
  std::string text() const {
    if (count_ == 0) return "";
    std::string result = fmt::format("; {} {}: ", count_, sort_);
    for (std::size_t i = 0; i < shown_.size(); ++i) result += (i ? ", " : "") + shown_[i];
    return result + (count_ > kNamed ? ", ..." : "");
  }

 private:
  const char* sort_;
  std::size_t count_ = 0;
  std::vector<std::string> shown_;
};

/// Takes tensors out of a file one by one and keeps book of what does not fit.
class Matcher {
 public:
  explicit Matcher(SafetensorsFile& file) : path_(file.path), count_(file.tensors.size()) {
    for (NamedArray& tensor : file.tensors) by_name_.emplace(tensor.name, &tensor);
  }

  void take(const WantedEntry& entry, std::vector<NamedArray>& out) {
    const auto found = by_name_.find(entry.name);
    if (found == by_name_.end()) {
      if (is_counter(entry.name)) return;
      missing_.add(excerpt(entry.name));
      return;
    }
    NamedArray& tensor = *found->second;
    by_name_.erase(found);
    if (tensor.shape != entry.shape) {
      misshaped_.add(fmt::format("{} {}, expected {}", entry.name, shape_text(tensor.shape),
                                 shape_text(entry.shape)));
    } else if (is_floating(tensor.dtype) == is_counter(entry.name)) {
      mistyped_.add(fmt::format("{} is {}", entry.name, name(tensor.dtype)));
    }
    out.push_back(std::move(tensor));
  }

  /// `checkpoint` unless all fitted and nothing is left over.
  void finish(std::size_t wanted) {
    Complaints unexpected("unexpected");
    for (const auto& [name, tensor] : by_name_) unexpected.add(excerpt(name));
    const std::string complaints =
        missing_.text() + unexpected.text() + misshaped_.text() + mistyped_.text();
    if (complaints.empty()) return;
    CONVOY_FAIL(checkpoint, "{}: {} entries do not fit the network's {}{}", printable(path_),
                count_, wanted, complaints);
  }

 private:
  std::string path_;
  std::size_t count_;
  std::map<std::string, NamedArray*> by_name_;
  Complaints missing_{"missing"};
  Complaints misshaped_{"of another shape"};
  Complaints mistyped_{"of another kind of number"};
};

}  // namespace

MatchedWeights match_weights(const std::vector<WantedEntry>& wanted, SafetensorsFile file) {
  MatchedWeights matched;
  for (std::string_view prefix : {"module.", "_orig_mod."}) {
    strip(prefix, wanted, file, matched.notes);
  }
  const std::size_t count = file.tensors.size();
  Matcher matcher(file);
  for (const WantedEntry& entry : wanted) matcher.take(entry, matched.tensors);
  matcher.finish(wanted.size());
  matched.notes.push_back(
      fmt::format("{}: {} of {} entries", printable(file.path), matched.tensors.size(), count));
  return matched;
}

}  // namespace convoy
