// `verify`: the layout of workers against one device, step by step.
#include "engine/train/verify.h"
#include "cli/check_settings.h"
#include "cli/commands.h"
#include "cli/job_group.h"
#include "cli/run_setup.h"
#include "cli/setup.h"
#include "cli/verify_text.h"
#include "engine/train/ranks.h"
#include "engine/train/setup.h"

namespace convoy::cli {
namespace {

constexpr std::int64_t kSteps = 3;

// Every process runs this; the leading one alone shows, and ends all where the layout is not equal.
int verify_in(Options& options, const JobGroup& processes) {
  options.settings.steps = options.settings.steps.value_or(kSteps);
  check_settings(options);
  layout_of(options.settings, processes.workers());  // what does not fit is said before all else
  TrainingJob job = make_job(options, processes.group());
  if (processes.group()) check_agreement(job, *processes.group());
  settle_cuts(options, job);
  const Ranks ranks = ranks_of(job);
  const std::set<std::string> warnings = all_device_warnings(options.settings, ranks);
  if (processes.leads()) {
    print_warnings({warnings.begin(), warnings.end()});
    print_notes(options.notes);
  }
  const VerifyResult result = verify(job, {.steps = *options.settings.steps});
  if (processes.leads()) {
    for (const std::string& line : verify_lines(options, result)) print_line(line);
    check_equal(result);
  }
  ranks.barrier();
  return 0;
}

}  // namespace

int run_verify(Options& options) {
  JobGroup processes(options);
  return processes.run([&] { return verify_in(options, processes); });
}

}  // namespace convoy::cli
