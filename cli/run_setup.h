// From options to the job that the engine trains or evaluates.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "cli/metrics_observer.h"
#include "cli/options.h"
#include "engine/train/ranks.h"
#include "engine/train/trainer.h"

namespace convoy::cli {

/// Opens --data for --model: images, or rows.
DataPair open_data_for(const Settings& settings);

/// The job of --model on --data for all workers of `group` (null: one alone). What was left open in
/// `options` is filled in as it will be.
TrainingJob make_job(Options& options, convoy::Group* group);

/// `usage`, or `data`, on all processes unless they would work on the same network and data.
void check_agreement(const TrainingJob& job, convoy::Group& group);

/// Chooses the cuts of `job` where --cut leaves them open; they stand in `options` and `job` then.
/// Collective; the processes' settings have been compared.
void settle_cuts(Options& options, TrainingJob& job);

/// Those of all processes, each once. Collective.
std::set<std::string> all_device_warnings(const Settings& settings, const Ranks& ranks);

/// What shows a run to people; nothing where this process does not lead.
std::unique_ptr<Observer> display_of(const Options& options, bool leads);

/// Each setting as JSON text, by its flag's name.
std::map<std::string, std::string> settings_json(const Options& options);

/// Versions of the program and of what decides its results.
Versions versions();

}  // namespace convoy::cli
