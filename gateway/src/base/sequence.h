// Steps that wait for events, written as one function that reads from top to bottom: a coroutine
// without a result. For rare operations, because each wait allocates memory.
//
//   Sequence give_up(std::shared_ptr<Device> device) {
//     co_await drained(*device);  // functions that return Until
//     co_await closed(*device);
//     device->finish();
//   }
//
// A sequence takes its arguments by value, unless they live until its end.
#pragma once

#include <coroutine>
#include <exception>
#include <functional>
#include <memory>
#include <utility>

namespace sluice {

// Runs when it is called, until its first wait. Its end is not reported.
class Sequence {
 public:
  struct promise_type {
    Sequence get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    // An exception here is a defect: product code throws none.
    void unhandled_exception() noexcept { std::terminate(); }
  };
};

// The wait of a sequence for one event.
class Until {
 public:
  using Done = std::function<void()>;
  // Starts the operation whose end is the event. It gets a function to call once, on any thread:
  // the sequence then continues within that call. If all copies of the function are destroyed
  // instead, because a reactor ended, the sequence ends at its wait and releases what it holds.
  using Start = std::function<void(Done)>;

  explicit Until(Start start) : start_(std::move(start)) {}

  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> sequence) {
    // The sequence may continue on another thread before start() returns, which ends this object.
    const Start start = std::move(start_);
    start([waiting = std::make_shared<Waiting>(sequence)] { waiting->resume(); });
  }
  void await_resume() const noexcept {}

 private:
  class Waiting {
   public:
    explicit Waiting(std::coroutine_handle<> sequence) : sequence_(sequence) {}
    ~Waiting() {
      if (sequence_) sequence_.destroy();
    }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;
    void resume() { std::exchange(sequence_, nullptr).resume(); }

   private:
    std::coroutine_handle<> sequence_;
  };

  Start start_;
};

}  // namespace sluice
