// The program `disk_bench`: how fast the disk gives files to some threads past the page cache (O_DIRECT), as a measure of
// scans that find nothing in memory. bench/stream.py runs it.
//
//   disk_bench --threads N [--piece BYTES] FILE...
//
// Threads take pieces of the files in order, each waiting for its own. Prints a line of CSV: bytes, ms, GB/s.
#include <fcntl.h>
#include <getopt.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace tessera::bench {
namespace {

/// What O_DIRECT wants buffers, places and sizes to be multiples of, on any disk.
constexpr uint64_t kBlock = 4096;

struct Piece {
  int fd;
  const char* path;
  uint64_t at, bytes;
};

struct Free {
  void operator()(void* memory) const { free(memory); }
};

int Fail(const char* what, const char* path, int error) {
  fprintf(stderr, "ERROR: cannot %s \"%s\": %s\n", what, path, strerror(error));
  return 1;
}

int Main(int argc, char** argv) {
  const option options[] = {{"threads", required_argument, nullptr, 't'},
                            {"piece", required_argument, nullptr, 'p'},
                            {nullptr, 0, nullptr, 0}};
  uint64_t threads = 1, piece = uint64_t{1} << 20;
  for (int o; (o = getopt_long(argc, argv, "", options, nullptr)) != -1;) {
    if (o == '?') return 2;
    (o == 't' ? threads : piece) = strtoull(optarg, nullptr, 10);
  }
  if (optind == argc || threads == 0 || piece == 0 || piece % kBlock != 0) {
    fprintf(stderr, "disk_bench --threads N [--piece BYTES] FILE...; a piece is a multiple of %lu bytes\n", kBlock);
    return 2;
  }
  std::vector<Piece> pieces;
  uint64_t bytes = 0;
  for (int i = optind; i < argc; ++i) {
    const int fd = open(argv[i], O_RDONLY | O_DIRECT | O_CLOEXEC);
    struct stat info;
    if (fd < 0 || fstat(fd, &info) != 0) return Fail("open", argv[i], errno);
    const uint64_t size = static_cast<uint64_t>(info.st_size);
    for (uint64_t at = 0; at < size; at += piece) pieces.push_back({fd, argv[i], at, std::min(piece, size - at)});
    bytes += size;
  }
  const uint64_t buffer_bytes = piece;
  std::vector<std::unique_ptr<char, Free>> buffers;
  for (uint64_t i = 0; i < threads; ++i) {
    buffers.emplace_back(static_cast<char*>(aligned_alloc(kBlock, buffer_bytes)));
    if (buffers.back() == nullptr) return Fail("read", argv[optind], ENOMEM);
    memset(buffers.back().get(), 0, buffer_bytes);
  }
  std::atomic<size_t> next{0}, failed{SIZE_MAX};
  std::atomic<int> error{0};
  const auto read_pieces = [&](char* buffer) {
    for (size_t i; (i = next++) < pieces.size();) {
      // (The last piece of a file ends where the file does, within a block.)
      const uint64_t size = (pieces[i].bytes + kBlock - 1) / kBlock * kBlock;
      for (uint64_t done = 0; done < pieces[i].bytes;) {
        const ssize_t n = pread(pieces[i].fd, buffer + done, size - done, static_cast<off_t>(pieces[i].at + done));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
          error = n < 0 ? errno : EIO;
          failed = i;
          return;
        }
        done += static_cast<uint64_t>(n);
      }
    }
  };
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::thread> running;
  for (const auto& buffer : buffers) running.emplace_back(read_pieces, buffer.get());
  for (std::thread& t : running) t.join();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (failed != SIZE_MAX) return Fail("read", pieces[failed].path, error);
  printf("bytes,ms,gb_per_s\n%lu,%.3f,%.3f\n", bytes, seconds * 1e3, static_cast<double>(bytes) / seconds / 1e9);
  return 0;
}

}  // namespace
}  // namespace tessera::bench

int main(int argc, char** argv) { return tessera::bench::Main(argc, argv); }
