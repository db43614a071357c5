// Marks functions that GPU code may call too.
#pragma once

#ifdef __CUDACC__
#define CONVOY_HOST_DEVICE __host__ __device__
#else
#define CONVOY_HOST_DEVICE
#endif
