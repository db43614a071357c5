#include "engine/io/weights.h"

#include "tests/support/arrays.h"
#include "tests/support/expect_error.h"

using namespace convoy;
using namespace convoy::testing;

namespace {

/// Names of a network of `blocks` batch norms, a stem and a classifier, as torchvision names them.
std::vector<WantedEntry> wanted_entries(int blocks) {
  std::vector<WantedEntry> wanted{{"conv1.weight", {4, 3, 1, 1}}};
  for (int i = 0; i < blocks; ++i) {
    for (const char* part : {"weight", "bias", "running_mean", "running_var"}) {
      wanted.push_back({fmt::format("layer1.{}.bn1.{}", i, part), {4}});
    }
    wanted.push_back({fmt::format("layer1.{}.bn1.num_batches_tracked", i), {}});
  }
  wanted.push_back({"fc.weight", {10, 4}});
  wanted.push_back({"fc.bias", {10}});
  return wanted;
}

NamedArray tensor_for(const WantedEntry& entry, const std::string& prefix = "") {
  if (entry.shape.empty()) return make_array<std::int64_t>(prefix + entry.name, {}, {3});
  std::int64_t count = 1;
  for (std::int64_t extent : entry.shape) count *= extent;
  return make_array(prefix + entry.name, entry.shape,
                    std::vector<float>(count, static_cast<float>(entry.name.size())));
}

SafetensorsFile file_for(const std::vector<WantedEntry>& wanted, const std::string& prefix = "") {
  SafetensorsFile file{"w.safetensors", {}, {}};
  for (const WantedEntry& entry : wanted) file.tensors.push_back(tensor_for(entry, prefix));
  return file;
}

}  // namespace

TEST_CASE("weights: tensors come in the order wanted", "[io][weights]") {
  const std::vector<WantedEntry> wanted = wanted_entries(3);
  SafetensorsFile file = file_for(wanted);
  std::reverse(file.tensors.begin(), file.tensors.end());
  const MatchedWeights matched = match_weights(wanted, std::move(file));
  CHECK(matched.tensors == file_for(wanted).tensors);
  CHECK(matched.notes == std::vector<std::string>{"w.safetensors: 18 of 18 entries"});
}

TEST_CASE("weights: module. before all names is stripped and said", "[io][weights]") {
  const std::vector<WantedEntry> wanted = wanted_entries(3);
  for (const char* prefix : {"module.", "_orig_mod.", "module.module."}) {
    const MatchedWeights matched = match_weights(wanted, file_for(wanted, prefix));
    CHECK(matched.tensors == file_for(wanted).tensors);
    INFO(prefix);
    REQUIRE(matched.notes.size() >= 2);
    CHECK(matched.notes.front().find("from all 18 names") != std::string::npos);
    CHECK(matched.notes.back() == "w.safetensors: 18 of 18 entries");
  }
}

TEST_CASE("weights: module. before some names is not stripped", "[io][weights]") {
  const std::vector<WantedEntry> wanted = wanted_entries(1);
  SafetensorsFile file = file_for(wanted, "module.");
  file.tensors[0].name = "conv1.weight";
  expect_error(ErrorKind::checkpoint, {"6 missing", "7 unexpected: module.fc.bias"},
               [&] { match_weights(wanted, file); });
}

TEST_CASE("weights: a network whose own names start with module. is left alone", "[io][weights]") {
  const std::vector<WantedEntry> wanted{{"module.weight", {2}}};
  CHECK(match_weights(wanted, file_for(wanted)).tensors.front().name == "module.weight");
}

TEST_CASE("weights: missing and unexpected entries are counted, five named", "[io][weights]") {
  const std::vector<WantedEntry> wanted = wanted_entries(2);
  SafetensorsFile file;
  file.path = "w.safetensors";
  for (WantedEntry entry : wanted) {
    if (const auto at = entry.name.find("bn1"); at != std::string::npos) {
      entry.name.insert(at, "features.module.");
    }
    file.tensors.push_back(tensor_for(entry));
  }
  expect_error(ErrorKind::checkpoint,
               {"w.safetensors", "13 entries",
                "8 missing: layer1.0.bn1.weight, layer1.0.bn1.bias, "
                "layer1.0.bn1.running_mean, layer1.0.bn1.running_var, layer1.1.bn1.weight, ...",
                "10 unexpected: layer1.0.features.module.bn1.bias, "},
               [&] { match_weights(wanted, file); });
}

TEST_CASE("weights: absent batch counters are accepted", "[io][weights]") {
  const std::vector<WantedEntry> wanted = wanted_entries(3);
  SafetensorsFile file = file_for(wanted);
  std::erase_if(file.tensors, [](const NamedArray& array) { return array.shape.empty(); });
  const MatchedWeights matched = match_weights(wanted, std::move(file));
  CHECK(matched.tensors.size() == 15);
  CHECK(matched.notes.back() == "w.safetensors: 15 of 15 entries");
}

TEST_CASE("weights: another shape is named with both shapes", "[io][weights]") {
  const std::vector<WantedEntry> wanted = wanted_entries(1);
  SafetensorsFile file = file_for(wanted);
  file.tensors[6] = make_array("fc.weight", {1000, 2048}, std::vector<float>(1000 * 2048));
  file.tensors[7] = make_array("fc.bias", {1000}, std::vector<float>(1000));
  expect_error(ErrorKind::checkpoint,
               {"2 of another shape: fc.weight (1000, 2048), expected (10, 4), fc.bias (1000), "
                "expected (10)"},
               [&] { match_weights(wanted, file); });
}

TEST_CASE("weights: a single missing or extra entry is never passed over", "[io][weights]") {
  const std::vector<WantedEntry> wanted = wanted_entries(1);
  SafetensorsFile file = file_for(wanted);
  file.tensors.pop_back();
  expect_error(ErrorKind::checkpoint, {"1 missing: fc.bias"}, [&] { match_weights(wanted, file); });
  file = file_for(wanted);
  file.tensors.push_back(make_array<float>("evil\n", {1}, {1}));
  expect_error(ErrorKind::checkpoint, {"1 unexpected: evil\\x0A"},
               [&] { match_weights(wanted, file); });
  expect_error(ErrorKind::checkpoint, {"0 entries", "7 missing"}, [&] {
    match_weights(wanted, {"w", {}, {}});
  });
}

TEST_CASE("weights: integers in the place of weights are refused", "[io][weights]") {
  const std::vector<WantedEntry> wanted{{"fc.bias", {2}}, {"bn.num_batches_tracked", {}}};
  SafetensorsFile file{"w",
                       {make_array<std::int64_t>("fc.bias", {2}, {1, 2}),
                        make_array<float>("bn.num_batches_tracked", {}, {1})},
                       {}};
  expect_error(ErrorKind::checkpoint,
               {"2 of another kind of number: fc.bias is i64, bn.num_batches_tracked is f32"},
               [&] { match_weights(wanted, file); });
}
