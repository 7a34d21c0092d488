#include "control/local/lock_handover.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <thread>
#include <tuple>
#include <utility>

#include "base/limits.h"
#include "base/log.h"
#include "control/local/handover_socket.h"

namespace sluice::control {
namespace {

constexpr int kAcceptAgain = limits::kTick / kMillisecond;
// a request is one line, which is sent at once
constexpr Nanos kRequestPatience = 200 * kMillisecond;

void set_patience(int fd, Nanos patience) {
  timeval limit{};
  limit.tv_sec = patience / kSecond;
  limit.tv_usec = patience % kSecond / kMicrosecond;
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

bool send_line(int fd, const std::string& line) {
  const std::string text = line + '\n';
  return ::send(fd, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

// Empty: no complete line arrived. *closed: the other side has closed, so none will.
std::string receive_line(int fd, bool* closed) {
  std::string text;
  *closed = false;
  char block[limits::kMaxHandoverRequest];
  while (text.size() < limits::kMaxHandoverRequest) {
    const ssize_t n = ::recv(fd, block, sizeof block, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      *closed = n == 0 || errno == ECONNRESET;
      return {};
    }
    text.append(block, static_cast<size_t>(n));
    if (text.ends_with('\n')) return text.substr(0, text.size() - 1);
  }
  return {};
}

// 0: no such name.
ino_t inode_of(int directory, const std::string& name) {
  struct stat status{};
  return ::fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 ? status.st_ino : 0;
}

class ServerImpl;

// A name by which this process serves, or has served. The mutex is also held while the socket is
// created or removed, which may hang with the directory.
struct ServedName {
  std::mutex mutex;
  std::weak_ptr<ServerImpl> server;
};

// The names of this process, by the directory's device and inode and the socket's name, because
// pools may use several paths for a directory. The mutex is never held while a directory may hang.
struct Serving {
  using Key = std::tuple<dev_t, ino_t, std::string>;

  std::shared_ptr<ServedName> name_of(const Key& key) {
    const std::lock_guard lock(mutex);
    std::erase_if(all, [](const auto& entry) { return entry.second.expired(); });
    std::shared_ptr<ServedName> name = all[key].lock();
    if (!name) all[key] = name = std::make_shared<ServedName>();
    return name;
  }

  std::mutex mutex;
  std::map<Key, std::weak_ptr<ServedName>> all;
};
Serving& serving() {
  static Serving& one = *new Serving;  // never destroyed
  return one;
}

class ServerImpl final : public HandoverServer {
 public:
  ServerImpl(FileDescriptor directory, std::shared_ptr<ServedName> served, std::string name,
             ino_t inode, FileDescriptor socket, Asked asked)
      : directory_(std::move(directory)),
        served_(std::move(served)),
        name_(std::move(name)),
        inode_(inode),
        socket_(std::move(socket)),
        wake_(::eventfd(0, EFD_CLOEXEC)),
        asked_(std::move(asked)),
        thread_([this] { serve(); }) {}

  ~ServerImpl() override {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t n = ::write(wake_.get(), &one, sizeof one);
    thread_.join();
    const std::lock_guard lock(served_->mutex);
    // A server that began meanwhile has the name.
    if (has_name()) ::unlinkat(directory_.get(), name_.c_str(), 0);
  }

  // Whether requests by this name reach this server.
  bool has_name() const { return inode_of(directory_.get(), name_) == inode_; }

 private:
  void serve() {
    pollfd fds[2] = {{wake_.get(), POLLIN, 0}, {socket_.get(), POLLIN, 0}};
    for (;;) {
      if (::poll(fds, 2, -1) < 0 && errno != EINTR) return;
      if (fds[0].revents != 0) return;
      const FileDescriptor client(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (client.valid()) {
        answer(client.get());
      } else {
        // Without a free descriptor the connection stays in the queue; poll() delays the next
        // attempt.
        ::poll(fds, 1, kAcceptAgain);
      }
    }
  }

  void answer(int fd) {
    set_patience(fd, kRequestPatience);
    bool closed = false;
    std::istringstream words(receive_line(fd, &closed));
    std::string verb, volume;
    unsigned version = 0;
    uint64_t order = 0;
    if (!(words >> verb >> version >> volume >> order) || verb != "lock" || version != 1) return;
    const HolderAnswer given = asked_(volume, order);
    log::info("lock of a volume asked for",
              {{"volume", volume}, {"order", order}, {"yields", given.yield == Yield::kYielding}});
    if (given.yield == Yield::kYielding) send_line(fd, "yielding");
    if (given.yield == Yield::kRefused) send_line(fd, "refused " + std::to_string(given.order));
    if (given.yield == Yield::kNotHeld) send_line(fd, "not-held");
  }

  const FileDescriptor directory_;
  const std::shared_ptr<ServedName> served_;
  const std::string name_;
  const ino_t inode_;  // of the bound socket; not reused while socket_ is open
  const FileDescriptor socket_;
  const FileDescriptor wake_;
  const Asked asked_;
  std::thread thread_;  // last, because it uses the other members
};

HolderAnswer parse_answer(const std::string& line) {
  if (line == "yielding") return {Yield::kYielding, 0};
  if (line == "not-held") return {Yield::kNotHeld, 0};
  HolderAnswer answer{Yield::kRefused, 0};
  std::istringstream words(line);
  std::string verb;
  if (words >> verb >> answer.order && verb == "refused") return answer;
  return {Yield::kUnreachable, 0};
}

// Field 22 of /proc/PID/stat; 0: no such process here.
uint64_t start_time_of(int64_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  const size_t name = line.rfind(')');
  if (name == std::string::npos) return 0;
  std::istringstream fields(line.substr(name + 1));
  std::string skipped;
  for (int i = 0; i < 19; ++i) fields >> skipped;
  uint64_t start = 0;
  fields >> start;
  return start;
}

}  // namespace

Result<std::shared_ptr<HandoverServer>> HandoverServer::start(int directory,
                                                              const std::string& name,
                                                              Asked asked) {
  FileDescriptor copy(::fcntl(directory, F_DUPFD_CLOEXEC, 0));
  struct stat status{};
  if (!copy.valid() || ::fstat(copy.get(), &status) != 0) {
    return Error{"can't make the socket " + name + ": " + reason_of(errno)};
  }
  const std::shared_ptr<ServedName> served =
      serving().name_of({status.st_dev, status.st_ino, name});
  std::shared_ptr<ServerImpl> there;  // declared before the lock: its destructor takes the mutex
  const std::lock_guard lock(served->mutex);
  there = served->server.lock();
  if (there && there->has_name()) return std::shared_ptr<HandoverServer>(there);
  Result<FileDescriptor> socket = listen_by_name(copy.get(), name);
  if (!socket) return Error{socket.error()};
  const ino_t inode = inode_of(copy.get(), name);
  const auto server = std::make_shared<ServerImpl>(std::move(copy), served, name, inode,
                                                   std::move(socket).value(), std::move(asked));
  served->server = server;
  return std::shared_ptr<HandoverServer>(server);
}

HolderAnswer ask_holder(int directory, const Holder& holder, const std::string& volume,
                        uint64_t order, Nanos patience) {
  const FileDescriptor socket = unix_socket();
  if (!plain_name(holder.socket) || !socket.valid()) return {Yield::kUnreachable, 0};
  set_patience(socket.get(), patience);
  const sockaddr_un address = address_of(directory, holder.socket);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    // The backlog is full: the process hangs.
    return {errno == EAGAIN ? Yield::kSilent : Yield::kUnreachable, 0};
  }
  if (!send_line(socket.get(), "lock 1 " + volume + ' ' + std::to_string(order))) {
    return {Yield::kUnreachable, 0};
  }
  bool closed = false;
  const std::string line = receive_line(socket.get(), &closed);
  // A holder that closes the connection does not hang: either it ends, which releases the lock, or
  // it can be asked again.
  if (line.empty()) return {closed ? Yield::kUnreachable : Yield::kSilent, 0};
  return parse_answer(line);
}

Result<void> kill_holder(const Holder& holder, const Holder& self) {
  const std::string name = "process " + std::to_string(holder.pid);
  if (holder.pid <= 1 || holder.start_time == 0) return Error{"its holder has left no process id"};
  if (holder.boot_id != self.boot_id) return Error{name + " held it before the last boot"};
  if (holder.pid_namespace != self.pid_namespace) {
    return Error{name +
                 " holds it in another pid namespace, from which it can't be killed; run "
                 "the gateways of a node in one (hostPID)"};
  }
  if (holder.pid == self.pid) return Error{"this process has not released it yet"};
  // First the descriptor, then the check: the descriptor can't refer to another process later.
  const FileDescriptor process(
      static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(holder.pid), 0)));
  if (!process.valid()) return Error{name + ", which is recorded as its holder, has ended"};
  if (start_time_of(holder.pid) != holder.start_time) {
    return Error{name + ", which is recorded as its holder, has ended"};
  }
  if (::syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0) != 0) {
    return Error{"can't kill " + name + ": " + reason_of(errno)};
  }
  return {};
}

}  // namespace sluice::control
