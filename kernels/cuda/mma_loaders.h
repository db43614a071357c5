// How operands of products come from global memory: each loader is a policy of the main loop. Made
// once per thread for its share of a tile, its load() starts the copies of one k-step and moves on
// to the next; rows, columns and taps that do not exist are zeros.
//
//     DenseRows      K contiguous           weights, activations of 1x1 filters (forward, dgrad)
//     TapRows        K contiguous           activations gathered by taps
//     DenseColumns   M or N contiguous      gradients (wgrad), 1x1: activations, weights (dgrad)
//     TapColumns     N contiguous           weights of several taps (dgrad)
//     PlaceColumns   N contiguous           activations gathered by taps (wgrad)
#pragma once

#include "kernels/cuda/mma_tile.h"

namespace convoy::CONVOY_GPU {

/// A number in mixed radix: `a` counts whole (b, c), b < extent_b, c < extent_c. K runs through
/// (tap row, tap column, channel), or through (image, row, column).
struct Digits {
  int a, b, c;
};

/// The digits of `value`.
CONVOY_HOST_DEVICE inline Digits digits_of(int value, int extent_b, int extent_c) {
  const int upper = value / extent_c;
  return {upper / extent_b, upper % extent_b, value % extent_c};
}

/// Adds `step`, whose b and c are below their extents.
__device__ __forceinline__ void add(Digits& digits, const Digits& step, int extent_b,
                                    int extent_c) {
  digits.c += step.c;
  const int carry_c = digits.c >= extent_c ? 1 : 0;
  digits.c -= carry_c ? extent_c : 0;
  digits.b += step.b + carry_c;
  const int carry_b = digits.b >= extent_b ? 1 : 0;
  digits.b -= carry_b ? extent_b : 0;
  digits.a += step.a + carry_b;
}

/// Which pieces of a tile a thread copies: one column of pieces, rows kRowStep apart.
template <int Rows, int PiecesPerRow, int Threads>
struct Share {
  static constexpr int kRowStep = Threads / PiecesPerRow;
  static constexpr int kCount = Rows / kRowStep;
  static_assert(Threads % PiecesPerRow == 0 && Rows % kRowStep == 0 && kCount > 0);
  static __device__ __forceinline__ int piece() {
    return static_cast<int>(threadIdx.x) % PiecesPerRow;
  }
  static __device__ __forceinline__ int row(int i) {
    return static_cast<int>(threadIdx.x) / PiecesPerRow + i * kRowStep;
  }
};

/// Rows from one copy of a thread to its next in tiles that run along columns: all tiles have two
/// threads for each of their kN columns.
template <class T, int Piece>
inline constexpr int kMmaRowStep = 2 * Piece / int{sizeof(T)};

/// Rows of `depth` values, `pitch` apart. Piece: bytes of one copy, whose addresses are aligned to
/// them.
template <class T, int Piece>
struct DenseRows {
  static constexpr bool kAlongK = true;
  static constexpr int kPiece = Piece;
  struct Params {
    const T* data;
    std::int64_t pitch;
    int rows, depth;
  };

  template <int Rows, int Threads>
  class Loader {
    using Part = Share<Rows, 64 / Piece, Threads>;

   public:
    __device__ __forceinline__ Loader(const Params& params, int first_row, int first_k)
        : params_(params), k_(first_k + Part::piece() * (Piece / int{sizeof(T)})) {
      row_ = first_row + Part::row(0);
      from_ = params.data + row_ * params.pitch + k_;
    }

    __device__ __forceinline__ void load(std::byte* tile) {
      const T* from = from_;
      CONVOY_UNROLL
      for (int i = 0; i < Part::kCount; ++i) {
        const bool valid = k_ < params_.depth && row_ + i * Part::kRowStep < params_.rows;
        const int byte = Part::piece() * Piece;
        ptx::cp_async<Piece>(tile + chunk_along_k(Part::row(i), byte / 16) + byte % 16,
                             valid ? from : params_.data, valid);
        from += Part::kRowStep * params_.pitch;
      }
      from_ += kMmaDepth<T>;
      k_ += kMmaDepth<T>;
    }

   private:
    const Params& params_;
    const T* from_;
    int row_, k_;
  };
};

/// Rows are places (image, row, column), K runs through (tap row, tap column, channel). A place's
/// first tap is at (row * stride_h + first_h, ...) of the tensor, the next ones direction apart.
template <class T, int Piece>
struct TapRows {
  static constexpr bool kAlongK = true;
  static constexpr int kPiece = Piece;
  struct Params {
    const T* data;
    int images, h, w, channels;     // the tensor, channels last
    int place_h, place_w;           // places of an image
    int stride_h, stride_w;         // of the tensor, per place
    int first_h, first_w;           // of the first tap
    int taps_h, taps_w, direction;  // direction: 1 or -1
    Digits step;                    // a k-step in (tap row, tap column, channel)
  };

  template <int Rows, int Threads>
  class Loader {
    using Part = Share<Rows, 64 / Piece, Threads>;

   public:
    __device__ __forceinline__ Loader(const Params& params, int first_row, int first_k)
        : params_(params) {
      k_ = digits_of(first_k + Part::piece() * (Piece / int{sizeof(T)}), params.taps_w,
                     params.channels);
      CONVOY_UNROLL
      for (int i = 0; i < Part::kCount; ++i) place(i, first_row + Part::row(i));
    }

    __device__ __forceinline__ void load(std::byte* tile) {
      const int offset = (k_.a * params_.w + k_.b) * params_.channels * params_.direction + k_.c;
      CONVOY_UNROLL
      for (int i = 0; i < Part::kCount; ++i) {
        const bool valid = (masks_[i] >> k_.a & masks_[i] >> (16 + k_.b) & 1) != 0;
        const int byte = Part::piece() * Piece;
        ptx::cp_async<Piece>(tile + chunk_along_k(Part::row(i), byte / 16) + byte % 16,
                             valid ? from_[i] + offset : params_.data, valid);
      }
      add(k_, params_.step, params_.taps_w, params_.channels);
    }

   private:
    // Which of `taps` coordinates from `first` lie in 0..extent-1, a bit each.
    __device__ __forceinline__ unsigned valid_taps(int first, int taps, int extent) const {
      unsigned mask = 0;
      for (int i = 0; i < taps; ++i) {
        const int at = first + i * params_.direction;
        mask |= (at >= 0 && at < extent ? 1u : 0u) << i;
      }
      return mask;
    }

    __device__ __forceinline__ void place(int i, int row) {
      const Digits at = digits_of(row, params_.place_h, params_.place_w);
      const int h = at.b * params_.stride_h + params_.first_h;
      const int w = at.c * params_.stride_w + params_.first_w;
      from_[i] = params_.data + std::int64_t{at.a} * params_.h * params_.w * params_.channels +
                 (h * params_.w + w) * params_.channels;
      masks_[i] = at.a >= params_.images ? 0
                                         : valid_taps(h, params_.taps_h, params_.h) |
                                               valid_taps(w, params_.taps_w, params_.w) << 16;
    }

    const Params& params_;
    const T* from_[Part::kCount];
    unsigned masks_[Part::kCount];  // lower half: tap rows, upper half: tap columns
    Digits k_;
  };
};

/// `depth` rows of `columns` values, `pitch` apart: K runs through the rows.
template <class T, int Piece>
struct DenseColumns {
  static constexpr bool kAlongK = false;
  static constexpr int kPiece = Piece;
  struct Params {
    const T* data;
    std::int64_t pitch;
    int depth, columns;
  };

  template <int Columns, int Threads>
  class Loader {
    static constexpr int kRowBytes = Columns * int{sizeof(T)};
    using Part = Share<kMmaDepth<T>, kRowBytes / Piece, Threads>;

   public:
    __device__ __forceinline__ Loader(const Params& params, int first_column, int first_k)
        : params_(params), k_(first_k + Part::row(0)) {
      const int column = first_column + Part::piece() * (Piece / int{sizeof(T)});
      from_ = params.data + k_ * params.pitch + column;
      depth_ = column < params.columns ? params.depth : 0;
    }

    __device__ __forceinline__ void load(std::byte* tile) {
      CONVOY_UNROLL
      for (int i = 0; i < Part::kCount; ++i) {
        const bool valid = k_ + i * Part::kRowStep < depth_;
        const int byte = Part::piece() * Piece;
        ptx::cp_async<Piece>(
            tile + chunk_along_columns<T, kRowBytes>(Part::row(i), byte / 16) + byte % 16,
            valid ? from_ + i * Part::kRowStep * params_.pitch : params_.data, valid);
      }
      from_ += kMmaDepth<T> * params_.pitch;
      k_ += kMmaDepth<T>;
    }

   private:
    const Params& params_;
    const T* from_;
    int k_, depth_;
  };
};

/// Weights (filter, tap row, tap column, channel) with K running through (tap row, tap column,
/// filter) of a class of taps, and a column for each channel.
template <class T, int Piece>
struct TapColumns {
  static constexpr bool kAlongK = false;
  static constexpr int kPiece = Piece;
  struct Params {
    const T* data;     // of the first tap
    int filter_pitch;  // values of a filter
    int filters, channels;
    int taps_h, taps_w;    // of the class
    int pitch_h, pitch_w;  // from one tap of the class to the next
    Digits step;           // kMmaRowStep in (tap row, tap column, filter)
  };

  template <int Columns, int Threads>
  class Loader {
    static constexpr int kRowBytes = Columns * int{sizeof(T)};
    using Part = Share<kMmaDepth<T>, kRowBytes / Piece, Threads>;

    static_assert(Part::kRowStep == kMmaRowStep<T, Piece>);

   public:
    __device__ __forceinline__ Loader(const Params& params, int first_column, int first_k)
        : params_(params) {
      column_ = first_column + Part::piece() * (Piece / int{sizeof(T)});
      taps_ = column_ < params.channels ? params.taps_h : 0;
      k_ = digits_of(first_k + Part::row(0), params.taps_w, params.filters);
    }

    __device__ __forceinline__ void load(std::byte* tile) {
      CONVOY_UNROLL
      for (int i = 0; i < Part::kCount; ++i) {
        const bool valid = k_.a < taps_;
        const T* from = params_.data + k_.c * params_.filter_pitch +
                        (k_.a * params_.pitch_h + k_.b * params_.pitch_w + column_);
        const int byte = Part::piece() * Piece;
        ptx::cp_async<Piece>(
            tile + chunk_along_columns<T, kRowBytes>(Part::row(i), byte / 16) + byte % 16,
            valid ? from : params_.data, valid);
        add(k_, params_.step, params_.taps_w, params_.filters);
      }
    }

   private:
    const Params& params_;
    int column_, taps_;
    Digits k_;  // of the next row to load: a thread's rows are equally far apart over all steps
  };
};

/// K runs through places (image, row, column); columns are (tap row, tap column, channel).
template <class T, int Piece>
struct PlaceColumns {
  static constexpr bool kAlongK = false;
  static constexpr int kPiece = Piece;
  struct Params {
    const T* data;
    int images, h, w, channels;  // the tensor, channels last
    int place_h, place_w;        // places of an image
    int stride_h, stride_w;
    int first_h, first_w;  // of the first tap: minus the padding
    int taps_h, taps_w;
    Digits step;  // kMmaRowStep in (image, row, column)
  };

  template <int Columns, int Threads>
  class Loader {
    static constexpr int kRowBytes = Columns * int{sizeof(T)};
    using Part = Share<kMmaDepth<T>, kRowBytes / Piece, Threads>;

    static_assert(Part::kRowStep == kMmaRowStep<T, Piece>);

   public:
    __device__ __forceinline__ Loader(const Params& params, int first_column, int first_k)
        : params_(params) {
      const int column = first_column + Part::piece() * (Piece / int{sizeof(T)});
      const Digits tap = digits_of(column, params.taps_w, params.channels);
      images_ = tap.a < params.taps_h ? params.images : 0;
      h_ = params.first_h + tap.a;
      w_ = params.first_w + tap.b;
      c_ = tap.c;
      k_ = digits_of(first_k + Part::row(0), params.place_h, params.place_w);
    }

    __device__ __forceinline__ void load(std::byte* tile) {
      CONVOY_UNROLL
      for (int i = 0; i < Part::kCount; ++i) {
        const int h = k_.b * params_.stride_h + h_, w = k_.c * params_.stride_w + w_;
        const bool valid = k_.a < images_ && h >= 0 && h < params_.h && w >= 0 && w < params_.w;
        const std::int64_t image = std::int64_t{k_.a} * params_.h * params_.w;
        const T* from = params_.data + (image + h * params_.w + w) * params_.channels + c_;
        const int byte = Part::piece() * Piece;
        ptx::cp_async<Piece>(
            tile + chunk_along_columns<T, kRowBytes>(Part::row(i), byte / 16) + byte % 16,
            valid ? from : params_.data, valid);
        add(k_, params_.step, params_.place_h, params_.place_w);
      }
    }

   private:
    const Params& params_;
    int images_, h_, w_, c_;
    Digits k_;  // of the next row to load: a thread's rows are equally far apart over all steps
  };
};

}  // namespace convoy::CONVOY_GPU
