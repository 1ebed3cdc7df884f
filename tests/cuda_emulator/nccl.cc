// An NCCL for emulated GPUs: the calls that kernels/ranks/ makes, over sockets between the processes of one machine. It
// becomes build/emulated/nccl.so, which TESSERA_NCCL names. Like the real one it matches sends and receives of two ranks
// in their order, and takes all of a group at the same time.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

extern "C" int cudaStreamSynchronize(void* stream);  // of the emulated runtime, in the program

namespace {

enum Result : int { kSuccess = 0, kSystemError = 2, kInvalidUsage = 5, kRemoteError = 6 };

struct Id {
  char bytes[128];
};

/// The bytes that go to a rank, or come from it.
struct Transfer {
  char* data;
  size_t bytes;
};

struct Peer {
  int socket = -1;
  std::deque<Transfer> out = {}, in = {};
};

}  // namespace

struct NcclComm {
  std::vector<Peer> peers;
  void* stream = nullptr;
  int error = kSuccess;
};

namespace {

thread_local std::vector<NcclComm*> in_group;

sockaddr_un AddressOf(const Id& id, int rank, socklen_t* length) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;  // in the abstract namespace: no file is left behind
  const int size = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "tessera-nccl-%.32s-%d", id.bytes, rank);
  *length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<size_t>(size));
  return address;
}

/// A socket to a rank that may not be there yet; -1: it does not come.
int ConnectTo(const Id& id, int to, int own) {
  socklen_t length = 0;
  const sockaddr_un address = AddressOf(id, to, &length);
  for (int tries = 0; tries < 10'000; ++tries) {
    const int s = socket(AF_UNIX, SOCK_STREAM, 0);
    if (s >= 0 && connect(s, reinterpret_cast<const sockaddr*>(&address), length) == 0 &&
        write(s, &own, sizeof own) == sizeof own)
      return s;
    if (s >= 0) close(s);
    usleep(1000);
  }
  return -1;
}

/// Moves what it can of the first transfer. false: the other rank is gone.
template <class F>
bool Step(std::deque<Transfer>* transfers, F move) {
  while (!transfers->empty()) {
    Transfer& t = transfers->front();
    const ssize_t n = move(t);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (n <= 0) return false;
    t.data += n;
    t.bytes -= static_cast<size_t>(n);
    if (t.bytes == 0) transfers->pop_front();
  }
  return true;
}

int RunGroup(NcclComm* comm) {
  if (cudaStreamSynchronize(comm->stream) != 0) return kSystemError;
  for (;;) {
    std::vector<pollfd> waits;
    for (Peer& p : comm->peers) {
      const auto receive = [&](const Transfer& t) { return read(p.socket, t.data, t.bytes); };
      const auto send_some = [&](const Transfer& t) { return send(p.socket, t.data, t.bytes, MSG_NOSIGNAL); };
      if (!Step(&p.in, receive) || !Step(&p.out, send_some)) return comm->error = kRemoteError;
      const int events = (p.in.empty() ? 0 : POLLIN) | (p.out.empty() ? 0 : POLLOUT);
      if (events != 0) waits.push_back({p.socket, static_cast<short>(events), 0});
    }
    if (waits.empty()) return kSuccess;
    poll(waits.data(), waits.size(), 100);
  }
}

int Add(NcclComm* comm, int peer, void* data, size_t bytes, bool leaves, void* stream) {
  if (in_group.empty() || peer < 0 || static_cast<size_t>(peer) >= comm->peers.size()) return kInvalidUsage;
  Peer& p = comm->peers[static_cast<size_t>(peer)];
  (leaves ? p.out : p.in).push_back({static_cast<char*>(data), bytes});
  comm->stream = stream;
  if (std::find(in_group.begin(), in_group.end(), comm) == in_group.end()) in_group.push_back(comm);
  return kSuccess;
}

}  // namespace

extern "C" {

int ncclGetVersion(int* version) {
  *version = 20000;
  return kSuccess;
}

int ncclGetUniqueId(Id* id) {
  *id = {};
  std::random_device random;
  snprintf(id->bytes, sizeof id->bytes, "%08x%08x%08x", random(), random(), random());
  return kSuccess;
}

int ncclCommInitRank(NcclComm** out, int ranks, Id id, int rank) {
  auto comm = std::make_unique<NcclComm>();
  comm->peers.resize(static_cast<size_t>(ranks));
  socklen_t length = 0;
  const sockaddr_un address = AddressOf(id, rank, &length);
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  if (listener < 0 || bind(listener, reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
      listen(listener, ranks) != 0)
    return kSystemError;
  for (int r = 0; r < rank; ++r) comm->peers[static_cast<size_t>(r)].socket = ConnectTo(id, r, rank);
  for (int r = rank + 1; r < ranks; ++r) {
    const int s = accept(listener, nullptr, nullptr);
    int from = -1;
    if (s < 0 || read(s, &from, sizeof from) != sizeof from || from <= rank || from >= ranks) return kSystemError;
    comm->peers[static_cast<size_t>(from)].socket = s;
  }
  close(listener);
  for (int r = 0; r < ranks; ++r) {
    const int s = comm->peers[static_cast<size_t>(r)].socket;
    if (r != rank && (s < 0 || fcntl(s, F_SETFL, O_NONBLOCK) != 0)) return kSystemError;
  }
  *out = comm.release();
  return kSuccess;
}

int ncclCommAbort(NcclComm* comm) {
  for (const Peer& p : comm->peers) {
    if (p.socket >= 0) close(p.socket);
  }
  delete comm;
  return kSuccess;
}

int ncclCommGetAsyncError(NcclComm* comm, int* error) {
  *error = comm->error;
  return kSuccess;
}

int ncclGroupStart() {
  in_group.push_back(nullptr);  // a group that has nothing yet
  return kSuccess;
}

int ncclGroupEnd() {
  const std::vector<NcclComm*> group = std::exchange(in_group, {});
  for (NcclComm* comm : group) {
    if (comm == nullptr) continue;
    if (const int result = RunGroup(comm); result != kSuccess) return result;
  }
  return kSuccess;
}

int ncclSend(const void* data, size_t count, int, int to, NcclComm* comm, void* stream) {
  return Add(comm, to, const_cast<void*>(data), count, true, stream);
}

int ncclRecv(void* data, size_t count, int, int from, NcclComm* comm, void* stream) {
  return Add(comm, from, data, count, false, stream);
}

const char* ncclGetErrorString(int result) { return result == kRemoteError ? "a rank is gone" : "an error"; }

}  // extern "C"
