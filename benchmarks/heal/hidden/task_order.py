def task_order(needs):
    missing = {task: len(required) for task, required in needs.items()}
    ready = sorted(task for task, count in missing.items() if count == 0)
    order = []
    while ready:
        task = ready.pop(0)
        order.append(task)
        for other, required in needs.items():
            if task in required:
                missing[other] -= 1
                if missing[other] == 0:
                    ready.append(other)
        ready.sort()
    if len(order) < len(needs):
        return None
    return order
