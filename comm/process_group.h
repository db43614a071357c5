// The group of workers as PyTorch's users know it: each worker joins it, asks for its rank and
// leaves it. A worker is a thread, so what it joined is its thread's own.
#pragma once

#include <functional>
#include <string>

#include "comm/communicator.h"
#include "comm/group.h"
#include "kernels/base/device.h"

namespace convoy {

/// Joins the group of all workers of the job: one of each process that the launcher started, or
/// all those of spawn(). `backend`: auto, thread, mpi, nccl. `timeout` in seconds bounds the
/// meeting (`communication` that names who is absent) and the time that a worker may stand still.
/// `usage` if the worker has joined already.
void init_process_group(const std::string& backend = "auto", double timeout = 60);
/// Leaves the group when what this worker has queued has run; the last worker of a process ends it.
/// Another one may follow.
void destroy_process_group();
bool is_initialized();

// These are `usage` for a worker that has not joined.

/// Of this worker among all.
int get_rank();
int get_world_size();
/// Of this worker among those of its host.
int get_local_rank();
/// Blocks until what this worker has queued has run and all workers are here.
void barrier();
/// The calling worker's end of the group.
Communicator& communicator();
/// cpu:K of the K-th worker of a process.
Device default_device();
/// The group that the calling worker joined.
Group& process_group();

/// Runs fn(0) to fn(workers - 1), each on a thread of its own, and waits for all. The first failure
/// in time is thrown again; it aborts the group that the others are in, so that none waits for
/// ever. Each worker has a stream of its own on cpu:0, where modules and tensors are made; others
/// may see its tensors when it has ended.
void spawn(const std::function<void(int)>& fn, int workers);

}  // namespace convoy
