// From options to the job that the engine trains or evaluates.
#pragma once

#include <map>
#include <string>

#include "cli/metrics_observer.h"
#include "cli/options.h"
#include "engine/train/trainer.h"

namespace convoy::cli {

/// Opens --data for --model: images, or rows.
DataPair open_data_for(const Settings& settings);

/// The job of --model on --data for all workers of `group` (null: one alone). What was left open in
/// `options` is filled in as it will be.
TrainingJob make_job(Options& options, convoy::Group* group);

/// Each setting as JSON text, by its flag's name.
std::map<std::string, std::string> settings_json(const Options& options);

/// Versions of the program and of what decides its results.
Versions versions();

}  // namespace convoy::cli
