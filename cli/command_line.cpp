#include "cli/command_line.h"

#include <optional>

#include "cli/aliases.h"
#include "cli/flags.h"
#include "cli/nearest.h"
#include "kernels/base/error.h"

namespace convoy::cli {
namespace {

/// A word that starts with a dash, cut into the flag and what is glued to it.
struct Typed {
  std::string flag;
  std::optional<std::string> value;
};

Typed split(const std::string& word) {
  bool is_long = word.starts_with("--");
  if (!is_long && word.size() > 2) return {word.substr(0, 2), word.substr(2)};  // -j4
  std::size_t equals = word.find('=');
  if (!is_long || equals == std::string::npos) return {word, {}};
  return {word.substr(0, equals), word.substr(equals + 1)};
}

const Flag& known_flag(const std::string& typed, const Meaning& meaning) {
  bool is_long = typed.starts_with("--");
  const Flag* flag = is_long || meaning.name != typed.substr(1) ? find_flag(meaning.name) : nullptr;
  CONVOY_CHECK(flag, "{} is no flag of convoy{}", typed,
               did_you_mean(meaning.name, flag_names(), "--"));
  return *flag;
}

/// Reads the words in order; `next_` is the first one not read yet.
class Reader {
 public:
  explicit Reader(const std::vector<std::string>& words) : words_(words) {}

  CommandLine read() {
    while (next_ < words_.size()) {
      const std::string& word = words_[next_++];
      if (word == "--") {
        line_.operands.insert(line_.operands.end(), words_.begin() + next_, words_.end());
        break;
      }
      if (word.size() > 1 && word[0] == '-') {
        read_flag(split(word));
      } else {
        line_.operands.push_back(word);
      }
    }
    return std::move(line_);
  }

 private:
  void read_flag(const Typed& typed) {
    Meaning meaning = meaning_of(typed.flag);
    const Flag& flag = known_flag(typed.flag, meaning);
    std::string text = meaning.value.empty() ? meaning.prefix + value_of(flag, typed)
                                             : fixed_value(meaning, typed);
    line_.assignments.push_back({&flag, {text, typed.flag}});
  }

  std::string fixed_value(const Meaning& meaning, const Typed& typed) {
    CONVOY_CHECK(!typed.value, "{} takes no value, but \"{}\" is given", typed.flag, *typed.value);
    line_.notes.push_back(
        fmt::format("{} is --{} {} here", typed.flag, meaning.name, meaning.value));
    return meaning.value;
  }

  std::string value_of(const Flag& flag, const Typed& typed) {
    if (typed.value) return *typed.value;
    if (flag.binding.kind == Kind::toggle) return "true";
    bool more = next_ < words_.size();
    if (flag.binding.kind == Kind::optional_text) {
      return more && words_[next_] == "auto" ? words_[next_++] : "true";
    }
    CONVOY_CHECK(more && !words_[next_].starts_with("--"), "{} needs a value: {} {}", typed.flag,
                 typed.flag, flag.value);
    return words_[next_++];
  }

  const std::vector<std::string>& words_;
  std::size_t next_ = 0;
  CommandLine line_;
};

}  // namespace

CommandLine read_command_line(const std::vector<std::string>& words) {
  return Reader(words).read();
}

}  // namespace convoy::cli
