// Convoy's C++ interface, all of it: tensors, ops, modules, optimizers, files, process groups, data
// parallelism, pipelines, networks by name. Names follow PyTorch's C++ interface where the thing is
// the same. To build with it: g++ -std=c++20 program.cpp $(pkg-config --cflags --libs convoy)
#pragma once

#if __cplusplus < 202002L
#error "Convoy needs C++20: compile with -std=c++20 or newer"
#endif

#include "comm/process_group.h"
#include "engine/autograd/backward.h"
#include "engine/autograd/grad_mode.h"
#include "engine/io/stream_trace.h"
#include "engine/nn/layers.h"
#include "engine/nn/network.h"
#include "engine/nn/state.h"
#include "engine/ops/ops.h"
#include "engine/optim/lr_schedule.h"
#include "engine/optim/optimizer.h"
#include "engine/parallel/data_parallel.h"
#include "engine/parallel/distributed_data_parallel.h"
#include "engine/parallel/pipeline_module.h"
#include "engine/parallel/tensor_collectives.h"
#include "engine/tensor/random.h"
#include "engine/tensor/tensor.h"
#include "kernels/base/context.h"
#include "kernels/base/error.h"
#include "models/models.h"
