#include "admin/client.h"

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "admin/socket.h"
#include "base/limits.h"

namespace sluice::admin {

Result<std::string> ask(const std::string& path, const std::string& request,
                        const std::string& argument) {
  constexpr size_t kMaxAnswer = size_t{64} << 20;
  Result<FileDescriptor> socket = connect_to(path);
  if (!socket) return Error{socket.error()};
  const uid_t server = peer_user(socket->get());
  // Root asks services that run under users of their own.
  if (server != 0 && server != geteuid() && geteuid() != 0) {
    return Error{path + " is served by uid " + std::to_string(server) + ", who is not trusted"};
  }
  // Others may be served before: as long as two of them take.
  const Deadline deadline =
      std::chrono::steady_clock::now() + std::chrono::nanoseconds(3 * limits::kAdminPatience);
  std::string buffer;
  std::string line;
  nlohmann::json question{{"request", request}};
  if (!argument.empty()) question["argument"] = argument;
  if (!write_all(socket->get(), -1, deadline, question.dump() + "\n") ||
      !read_line(socket->get(), -1, deadline, kMaxAnswer, &buffer, &line)) {
    return Error{"the gateway at " + path + " gave no answer"};
  }
  const nlohmann::ordered_json answer = nlohmann::ordered_json::parse(line, nullptr, false);
  if (!answer.is_object() || !answer.contains("ok")) {
    return Error{"the gateway at " + path + " gave an answer that makes no sense"};
  }
  if (answer["ok"] != true) return Error{answer.value("error", std::string("the gateway refused"))};
  return answer.contains("result") ? answer["result"].dump() : "null";
}

}  // namespace sluice::admin
