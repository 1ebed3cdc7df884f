// The program `alltoall_bench`: what an exchange of the ranks over MPI is measured against. Every rank sends every other one an
// equal part of some memory, each part in one message, all at the same time, and does nothing else.
//
//   mpirun -n RANKS alltoall_bench [megabytes that a rank sends, 1024] [times, 5]
//
// Rank 0 prints a line of CSV: ranks, bytes that a rank sends, GB/s of a rank. The time is the least of some rounds, of the
// slowest rank in each.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "mpi/transport.h"
#include "vm/shares/exchange.h"

namespace tessera::bench {
namespace {

constexpr int kTag = 1;

void WaitFor(Transport* transport, Transport::Request request) {
  while (!transport->Done(&request)) {
  }
}

/// Nanoseconds until all ranks have all parts.
int64_t Exchange(Transport* transport, const std::vector<char>& from, std::vector<char>* to, size_t part) {
  const int ranks = transport->ranks();
  int64_t here = 0;
  WaitFor(transport, transport->Sum(&here));  // all have come so far
  const auto start = std::chrono::steady_clock::now();
  std::vector<Transport::Request> requests;
  for (int k = 1; k < ranks; ++k) {
    const auto place = static_cast<size_t>(k - 1) * part;
    requests.push_back(transport->Receive((transport->rank() + ranks - k) % ranks, kTag, to->data() + place, part));
    requests.push_back(transport->Send((transport->rank() + k) % ranks, kTag, from.data() + place, part, false));
  }
  for (const Transport::Request request : requests) WaitFor(transport, request);
  // The slowest counts: the least of the negative times.
  int64_t time = -(std::chrono::steady_clock::now() - start).count();
  WaitFor(transport, transport->Minimum(&time));
  return -time;
}

int Main(int argc, char** argv) {
  const int megabytes = argc > 1 ? atoi(argv[1]) : 1024, times = argc > 2 ? atoi(argv[2]) : 5;
  if (megabytes < 1 || megabytes > 2047 || times < 1) {
    fprintf(stderr, "usage: mpirun -n RANKS alltoall_bench [megabytes that a rank sends, up to 2047] [times]\n");
    return 2;
  }
  auto opened = OpenTransport();
  if (!opened.ok()) {
    fprintf(stderr, "ERROR: %s\n%s\n", opened.status().message().c_str(), opened.status().hint().c_str());
    return 1;
  }
  Transport* const transport = opened->get();
  if (transport == nullptr || transport->ranks() < 2) {
    fprintf(stderr, "ERROR: there are no two ranks\nStart it with mpirun -n 2.\n");
    return 1;
  }
  const auto others = static_cast<size_t>(transport->ranks() - 1);
  const size_t part = (static_cast<size_t>(megabytes) << 20) / others;
  std::vector<char> from(part * others, 1), to(part * others);
  int64_t least = 0;
  for (int i = 0; i <= times; ++i) {
    const int64_t time = Exchange(transport, from, &to, part);
    if (i > 0) least = i == 1 ? time : std::min(least, time);
  }
  if (transport->rank() == 0) {
    const auto bytes = static_cast<double>(part * others);
    printf("ranks,bytes,gb_per_s\n%d,%.0f,%.2f\n", transport->ranks(), bytes, bytes / static_cast<double>(least));
  }
  return 0;
}

}  // namespace
}  // namespace tessera::bench

int main(int argc, char** argv) { return tessera::bench::Main(argc, argv); }
