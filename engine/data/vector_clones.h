// CONVOY_VECTOR_CLONES before a function builds it twice, for AVX2 and for any x86-64, chosen at
// run time. Integer code only: the results must not differ. Sanitizers cannot run the chooser.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define CONVOY_VECTOR_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define CONVOY_VECTOR_CLONES
#endif
