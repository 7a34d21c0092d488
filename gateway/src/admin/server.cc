#include "admin/server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>

#include "admin/socket.h"
#include "base/limits.h"
#include "base/log.h"

namespace sluice::admin {
namespace {

using nlohmann::json;

constexpr std::chrono::nanoseconds kAcceptAgain(limits::kTick);

std::string refusal(const std::string& message) {
  // Whatever the client sent may be quoted in it: no UTF-8 fault must end the gateway.
  return json{{"ok", false}, {"error", message}}.dump(-1, ' ', true,
                                                      json::error_handler_t::replace);
}

class SocketServer final : public Server {
 public:
  SocketServer(std::string path, Handlers handlers, Actions actions, FileDescriptor listener,
               FileDescriptor stop)
      : path_(std::move(path)),
        handlers_(std::move(handlers)),
        actions_(std::move(actions)),
        listener_(std::move(listener)),
        stop_(std::move(stop)) {
    struct stat status{};
    if (stat(path_.c_str(), &status) == 0) inode_ = status.st_ino;
    thread_ = std::thread([this] { run(); });
  }

  ~SocketServer() override {
    const uint64_t one = 1;
    // An eventfd takes eight bytes as long as its counter has room.
    if (::write(stop_.get(), &one, sizeof one) == sizeof one) thread_.join();
    struct stat status{};
    if (stat(path_.c_str(), &status) == 0 && status.st_ino == inode_) ::unlink(path_.c_str());
  }

 private:
  void run() {
    while (wait_ready(listener_.get(), POLLIN, stop_.get(), Deadline::max())) {
      const FileDescriptor client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (client.valid()) {
        serve(client.get());
      } else {
        // Without a free descriptor the connection stays in the queue; the wait delays the next
        // attempt.
        wait_ready(stop_.get(), POLLIN, -1, std::chrono::steady_clock::now() + kAcceptAgain);
      }
    }
  }

  void serve(int client) {
    const uid_t user = peer_user(client);
    if (user != 0 && user != geteuid()) {
      log::warning("admin request refused", {{"user", user}});
      return;
    }
    const Deadline deadline =
        std::chrono::steady_clock::now() + std::chrono::nanoseconds(limits::kAdminPatience);
    std::string buffer;
    std::string line;
    for (unsigned i = 0; i < limits::kMaxAdminRequests; ++i) {
      if (!read_line(client, stop_.get(), deadline, limits::kMaxAdminRequest, &buffer, &line)) {
        return;
      }
      if (!write_all(client, stop_.get(), deadline, answer(handlers_, line, actions_) + "\n"))
        return;
    }
  }

  const std::string path_;
  const Handlers handlers_;
  const Actions actions_;
  const FileDescriptor listener_;
  const FileDescriptor stop_;
  ino_t inode_ = 0;
  std::thread thread_;
};

}  // namespace

std::string answer(const Handlers& handlers, std::string_view line, const Actions& actions) {
  const json request = json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!request.is_object() || !request.contains("request") || !request["request"].is_string()) {
    return refusal("a request is an object like {\"request\": \"sessions\"}");
  }
  const auto& name = request["request"].get_ref<const std::string&>();
  if (const auto action = actions.find(name); action != actions.end()) {
    const Result<std::string> done =
        action->second(request.contains("argument") && request["argument"].is_string()
                           ? request["argument"].get<std::string>()
                           : std::string());
    return done ? R"({"ok":true,"result":)" + done.value() + "}" : refusal(done.error());
  }
  const auto handler = handlers.find(name);
  if (handler == handlers.end()) return refusal("unknown request '" + name + "'");
  return R"({"ok":true,"result":)" + handler->second() + "}";
}

Result<std::unique_ptr<Server>> Server::start(const std::string& path, Handlers handlers,
                                              Actions actions) {
  Result<FileDescriptor> listener = listen_at(path);
  if (!listener) return Error{listener.error()};
  FileDescriptor stop(::eventfd(0, EFD_CLOEXEC));
  if (!stop.valid()) return Error{"admin socket: " + std::string(std::strerror(errno))};
  return std::unique_ptr<Server>(std::make_unique<SocketServer>(
      path, std::move(handlers), std::move(actions), std::move(listener).value(), std::move(stop)));
}

}  // namespace sluice::admin
