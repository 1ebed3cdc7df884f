// How fast the GPUs of this machine copy to each other, without Tessera, NCCL or MPI: what an exchange between ranks is
// measured against.
//
//   gpu_links_bench [megabytes, 1024] [times, 5]
//
// Prints a line of CSV for each direction between two GPUs: what, from, to, GB/s. "one way" copies from one GPU to the
// other, "both ways" in both directions at once (GB/s of one direction), and "all to all" from every GPU to every other one
// at once, of which each gets an equal part (GB/s that a GPU sends; `from` is that GPU, `to` is empty). Times are the least
// of some rounds. "host" stands after pairs that cannot reach each other: their copies go through the host.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "kernels/cuda/cuda_memory.h"

namespace tessera {
namespace {

using kernels::DeviceBuffer;

struct Device {
  DeviceBuffer from, to;
  std::vector<cudaStream_t> streams;  ///< by the GPU that is copied to
};

struct Copy {
  int from, to;
  size_t bytes;
};

class Links {
 public:
  explicit Links(int count) : devices_(static_cast<size_t>(count)) {}

  Status Open(size_t bytes) {
    for (int d = 0; d < count(); ++d) {
      CUDA_TRY(cudaSetDevice(d));
      Device& device = At(d);
      TESSERA_TRY(device.from.Reserve(bytes));
      TESSERA_TRY(device.to.Reserve(bytes));
      CUDA_TRY(cudaMemset(device.from.As<void>(), d, bytes));
      for (int other = 0; other < count(); ++other) {
        CUDA_TRY(cudaStreamCreateWithFlags(&device.streams.emplace_back(), cudaStreamNonBlocking));
        if (other == d || !Reaches(d, other)) continue;
        CUDA_TRY(cudaDeviceEnablePeerAccess(other, 0));
      }
      CUDA_TRY(cudaDeviceSynchronize());
    }
    return Status::Ok();
  }

  bool Reaches(int from, int to) const {
    int can = 0;
    return cudaDeviceCanAccessPeer(&can, from, to) == cudaSuccess && can != 0;
  }

  /// Seconds until all copies, which run at the same time, are done: the least of `times` rounds.
  tessera::Result<double> Time(const std::vector<Copy>& copies, int times) {
    double least = 0;
    for (int i = 0; i <= times; ++i) {
      const auto start = std::chrono::steady_clock::now();
      std::vector<size_t> places(devices_.size());
      for (const Copy& c : copies) {
        // (What comes from several GPUs lies side by side.)
        auto* const to = At(c.to).to.As<char>() + places[static_cast<size_t>(c.to)];
        places[static_cast<size_t>(c.to)] += c.bytes;
        CUDA_TRY(cudaMemcpyPeerAsync(to, c.to, At(c.from).from.As<void>(), c.from, c.bytes, StreamOf(c)));
      }
      for (const Copy& c : copies) CUDA_TRY(cudaStreamSynchronize(StreamOf(c)));
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      if (i > 0) least = i == 1 ? seconds : std::min(least, seconds);
    }
    return least;
  }

  int count() const { return static_cast<int>(devices_.size()); }

 private:
  Device& At(int device) { return devices_[static_cast<size_t>(device)]; }
  cudaStream_t StreamOf(const Copy& c) { return At(c.from).streams[static_cast<size_t>(c.to)]; }

  std::vector<Device> devices_;
};

void Print(const char* what, int from, int to, bool reaches, double bytes, double seconds) {
  printf("%s%s,%d,%s,%.1f\n", what, reaches ? "" : " (host)", from, to < 0 ? "" : std::to_string(to).c_str(),
         bytes / seconds / 1e9);
}

Status Run(size_t bytes, int times) {
  int count = 0;
  CUDA_TRY(cudaGetDeviceCount(&count));
  if (count < 2) return {ErrorCode::kUnsupported, "there are no two GPUs here"};
  Links links(count);
  TESSERA_TRY(links.Open(bytes));
  printf("what,from,to,gb_per_s\n");
  const auto size = static_cast<double>(bytes);
  std::vector<Copy> all;
  const size_t part = bytes / static_cast<size_t>(count - 1);
  for (int from = 0; from < count; ++from) {
    for (int to = 0; to < count; ++to) {
      if (from == to) continue;
      all.push_back({from, to, part});
      TESSERA_ASSIGN(const double one, links.Time({{from, to, bytes}}, times));
      Print("one way", from, to, links.Reaches(from, to), size, one);
      if (from > to) continue;
      TESSERA_ASSIGN(const double both, links.Time({{from, to, bytes}, {to, from, bytes}}, times));
      Print("both ways", from, to, links.Reaches(from, to), size, both);
    }
  }
  TESSERA_ASSIGN(const double seconds, links.Time(all, times));
  for (int from = 0; from < count; ++from)
    Print("all to all", from, -1, true, static_cast<double>(part) * (count - 1), seconds);
  return Status::Ok();
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  const int megabytes = argc > 1 ? atoi(argv[1]) : 1024, times = argc > 2 ? atoi(argv[2]) : 5;
  if (megabytes < 1 || times < 1) {
    fprintf(stderr, "usage: gpu_links_bench [megabytes, 1024] [times, 5]\n");
    return 2;
  }
  const tessera::Status status = tessera::Run(static_cast<size_t>(megabytes) << 20, times);
  if (status.ok()) return 0;
  fprintf(stderr, "ERROR: %s\n%s\n", status.message().c_str(), status.hint().c_str());
  return 1;
}
