def pack_boxes(weights, limit):
    boxes = []
    for weight in weights:
        for box in boxes:
            if sum(box) + weight <= limit:
                box.append(weight)
                break
        else:
            boxes.append([weight])
    return boxes
