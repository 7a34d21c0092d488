// The local admin socket: one JSON object per line each way.
//
//   -> {"request": "sessions"}, {"request": "accept-system", "argument": "UUID"}
//   <- {"ok": true, "result": [...]}
//   <- {"ok": false, "error": "..."}
//
// Threads: one of its own. It serves one client at a time, for at most limits::kAdminPatience, so
// that a blocked client only delays others. Handlers run on it.
//
// Access: the socket has mode 0600, and only root and the gateway's own user get answers.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace sluice::admin {

// Returns the result as JSON text in one line.
using Handler = std::function<std::string()>;
using Handlers = std::map<std::string, Handler, std::less<>>;

// Performs a change with the request's "argument"; returns the result as JSON text in one line.
using Action = std::function<Result<std::string>(const std::string& argument)>;
using Actions = std::map<std::string, Action, std::less<>>;

// The answer to one line, without its newline. Any input gets an answer.
std::string answer(const Handlers& handlers, std::string_view line, const Actions& actions = {});

class Server {
 public:
  // Creates the socket's directory if necessary and replaces an unused socket. Error: another
  // gateway serves it, or it can't be created.
  static Result<std::unique_ptr<Server>> start(const std::string& path, Handlers handlers,
                                               Actions actions = {});
  virtual ~Server() = default;  // ends the thread and removes the socket
};

}  // namespace sluice::admin
