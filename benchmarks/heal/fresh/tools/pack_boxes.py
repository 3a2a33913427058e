def pack_boxes(weights, limit):
    boxes = []
    for weight in weights:
        for box in boxes:
            if sum(box) + weight <= limit:
                box.append(weight)
        else:
            boxes.append([weight])
    return boxes
