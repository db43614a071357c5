// What each command does; the table in command.cpp says what it takes. Errors are thrown.
#pragma once

#include "cli/options.h"

namespace convoy::cli {

int run_train(Options& options);
int run_eval(Options& options);
int run_predict(Options& options);
int run_verify(Options& options);
int run_summary(Options& options);
int run_convert(Options& options);
int run_devices(Options& options);
int run_report(Options& options);
int run_launch(Options& options);
int run_plan(Options& options);
int run_bench_step(Options& options);
int run_bench_data(Options& options);
int run_bench_allreduce(Options& options);
int run_bench_split(Options& options);
int run_bench_kernels(Options& options);

}  // namespace convoy::cli
