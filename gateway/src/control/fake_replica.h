// A replica of the control plane in this process. A test scripts its answers.
#pragma once

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "control/wire.h"
#include "sluice/v1/gateway_stream.grpc.pb.h"

namespace sluice::control {

using ServerStream = grpc::ServerReaderWriter<wire::ConnectResponse, wire::ConnectRequest>;

// gRPC permits one writer per stream at a time, and a script may have several.
inline void write(ServerStream& stream, const wire::ConnectResponse& response) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  stream.Write(response);
}

// Events in order. A test waits for the next one.
class Events {
 public:
  void add(const std::string& what) {
    const std::lock_guard lock(mutex_);
    list_.push_back(what);
    changed_.notify_all();
  }
  // Skips events with another beginning. Returns an empty string if none arrives within kPatience.
  std::string next(const std::string& beginning) {
    std::unique_lock lock(mutex_);
    for (;;) {
      while (!list_.empty()) {
        const std::string what = list_.front();
        list_.pop_front();
        if (what.starts_with(beginning)) return what;
      }
      if (changed_.wait_for(lock, kPatience) == std::cv_status::timeout) return {};
    }
  }
  // Like next(), but leaves other events in the list, because threads report in any order.
  std::string take(const std::string& beginning) {
    std::unique_lock lock(mutex_);
    for (;;) {
      const auto found = std::ranges::find_if(
          list_, [&](const std::string& what) { return what.starts_with(beginning); });
      if (found != list_.end()) {
        std::string what = std::move(*found);
        list_.erase(found);
        return what;
      }
      if (changed_.wait_for(lock, kPatience) == std::cv_status::timeout) return {};
    }
  }

 private:
  static constexpr std::chrono::seconds kPatience{20};  // then the test fails

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> list_;
};

class Replica final : public ::sluice::v1::GatewayStreamService::Service {
 public:
  // Runs per stream, after the hello was read.
  using Script = std::function<grpc::Status(const wire::StreamHello&, ServerStream&)>;

  explicit Replica(Script script) : script_(std::move(script)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~Replica() override { server_->Shutdown(std::chrono::system_clock::now()); }

  grpc::Status Connect(grpc::ServerContext*, ServerStream* stream) override {
    wire::ConnectRequest first;
    if (!stream->Read(&first) || !first.has_hello()) return {grpc::INVALID_ARGUMENT, "no hello"};
    return script_(first.hello(), *stream);
  }
  std::string endpoint() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  const Script script_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

inline void welcome(ServerStream& stream, uint32_t number = 3) {
  wire::ConnectResponse response;
  response.mutable_welcome()->set_number(number);
  response.mutable_welcome()->set_heartbeat_interval_ms(100);
  write(stream, response);
}

}  // namespace sluice::control
